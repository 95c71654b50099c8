use std::collections::BTreeSet;

use atoll_types::{
    error::ErrorBody,
    key::Scope,
    terminal::{TerminalControl, TerminalEvent},
};
use utoipa::{
    Modify, OpenApi,
    openapi::{
        self, Content, KnownFormat, Ref, RefOr, Response, ResponseBuilder, SchemaFormat,
        content::ContentBuilder,
        path::{Operation, PathItem},
        schema::{ObjectBuilder, Type},
        security::{
            ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityRequirement, SecurityScheme,
        },
    },
};

use super::TEXT;
use crate::{access::Access, app::routes, *};

#[derive(OpenApi)]
#[openapi(
    info(title = "Atoll", description = "A sandbox for code nobody has read yet."),
    components(schemas(ErrorBody, TerminalControl, TerminalEvent)),
    paths(
        sessions::create, sessions::list, sessions::show, sessions::remove,
        sessions::set_timeout, sessions::metrics,
        executions::execute, executions::execute_once, executions::execute_once_short,
        files::read, files::write, files::remove, files::list, files::stat, files::exists,
        files::make_directory, files::rename, files::copy, files::change_mode,
        search::glob, search::grep, search::edit, search::watch,
        archives::pack, archives::unpack,
        processes::start, processes::list, processes::show, processes::kill, processes::attach,
        processes::write_stdin, processes::close_stdin, processes::signal, processes::resize,
        ports::list, ports::tunnel, ports::proxy, ports::proxy_root,
        terminal::attach,
        engines::list, environments::list, environments::prepare, keys::create, keys::list, keys::remove,
        e2b::execute, e2b::read, e2b::write, e2b::list,
        server::health, server::version, server::metrics, server::description,
    ),
    modifiers(&Common)
)]
struct Description;

/// What holds for every operation: it may say no, and it says who may use it.
struct Common;

impl Modify for Common {
    fn modify(&self, document: &mut openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        components
            .add_security_scheme("bearer", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
        components.add_security_scheme(
            "key",
            SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new("X-API-Key"))),
        );
        for route in routes().0 {
            let path = document.paths.paths.get_mut(&written(route.path));
            if let Some(operation) = path.and_then(|item| operation(item, route.method.as_str())) {
                describe(operation);
                operation.responses.responses.insert("default".to_owned(), refusal());
                operation.security = Some(security(route.access));
            }
        }
    }
}

/// A path as the document has it: a parameter is a parameter, however long.
fn written(path: &str) -> String {
    path.replace("{*", "{")
}

fn operation<'a>(item: &'a mut PathItem, method: &str) -> Option<&'a mut Operation> {
    match method {
        "GET" => item.get.as_mut(),
        "POST" => item.post.as_mut(),
        "PUT" => item.put.as_mut(),
        "DELETE" => item.delete.as_mut(),
        _ => None,
    }
}

/// A name of its own, a word for each answer, and bytes that are called bytes.
fn describe(operation: &mut Operation) {
    let tag = operation.tags.iter().flatten().next().cloned().unwrap_or_default();
    operation.operation_id = operation.operation_id.take().map(|name| format!("{tag}_{name}"));
    if let Some(RefOr::T(body)) = &mut operation.request_body {
        body.content.iter_mut().for_each(|(kind, content)| bytes_are_bytes(kind, content));
    }
    for response in operation.responses.responses.values_mut() {
        let RefOr::T(response) = response else { continue };
        response.description = "What was asked for.".to_owned();
        response.content.iter_mut().for_each(|(kind, content)| bytes_are_bytes(kind, content));
    }
}

fn bytes_are_bytes(kind: &str, content: &mut RefOr<Content>) {
    if let (RefOr::T(content), "application/octet-stream") = (content, kind) {
        let binary = SchemaFormat::KnownFormat(KnownFormat::Binary);
        let bytes = ObjectBuilder::new().schema_type(Type::String).format(Some(binary)).build();
        content.schema = Some(bytes.into());
    }
}

fn refusal() -> RefOr<Response> {
    let body = ContentBuilder::new().schema(Some(Ref::from_schema_name("ErrorBody"))).build();
    ResponseBuilder::new()
        .description("Why it was not done, and what would help.")
        .content("application/json", body)
        .build()
        .into()
}

fn security(access: Access) -> Vec<SecurityRequirement> {
    let scopes: &[&str] = match access {
        Access::Anyone => return vec![SecurityRequirement::default()],
        Access::AnyKey => &[],
        Access::Key(Scope::Read) => &["read"],
        Access::Key(Scope::Run) => &["run"],
        Access::Key(Scope::Admin) => &["admin"],
    };
    ["bearer", "key"].map(|name| SecurityRequirement::new(name, scopes.iter().copied())).to_vec()
}

fn generated() -> String {
    let mut text = Description::openapi().to_pretty_json().unwrap();
    text.push('\n');
    text
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a developer's switch, not a setting")]
fn the_checked_in_document_is_the_generated_one() {
    let generated = generated();
    if std::env::var("ATOLL_UPDATE_OPENAPI").is_ok() {
        let place = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
        std::fs::write(place, &generated).unwrap();
        return;
    }

    assert!(
        TEXT == generated,
        "the API changed: run `ATOLL_UPDATE_OPENAPI=1 cargo test -p atoll-api openapi`"
    );
}

#[test]
fn every_operation_has_a_name_of_its_own() {
    let document: serde_json::Value = serde_json::from_str(TEXT).unwrap();
    let mut names: Vec<_> = document["paths"]
        .as_object()
        .unwrap()
        .values()
        .flat_map(|item| item.as_object().unwrap().values())
        .map(|operation| operation["operationId"].as_str().unwrap())
        .collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();

    assert_eq!(names.len(), count);
}

#[test]
fn every_route_is_described_and_every_description_is_a_route() {
    let routed: BTreeSet<_> = routes()
        .0
        .iter()
        .map(|route| (written(route.path), route.method.as_str().to_lowercase()))
        .collect();
    let document: serde_json::Value = serde_json::from_str(&generated()).unwrap();
    let described: BTreeSet<_> = document["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, item)| {
            item.as_object().unwrap().keys().map(move |method| (path.clone(), method.clone()))
        })
        .collect();

    assert_eq!(routed, described);
}
