create table sessions (
    id            text primary key,
    sandbox       text not null unique,
    engine        text not null,
    environment   text not null,
    state         text not null,
    end           text,
    created       integer not null,
    expires       integer not null,
    last_activity integer not null,
    spec          text not null,
    metadata      text not null
) strict, without rowid;

create index sessions_by_age on sessions (created, id);

create table executions (
    id       text primary key,
    session  text not null,
    sandbox  text not null,
    summary  text not null,
    state    text not null check (state in ('running', 'ended', 'refused')),
    process  integer,
    created  integer not null,
    result   text
) strict, without rowid;

create index executions_running on executions (session) where state = 'running';
create index executions_by_age on executions (created);

create table keys (
    id      text primary key,
    name    text not null unique,
    hash    blob not null,
    scopes  text not null,
    created integer not null
) strict, without rowid;
