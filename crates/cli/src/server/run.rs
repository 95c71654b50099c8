//! A server from its first breath to its last.

use atoll_api::{Listener, Tls, UnixSocket};
use atoll_config::{Loaded, Settings};
use atoll_service::{AllowedMount, Engines, Service, Store};
use rustix::process::setsid;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{Mode, Place, Record, Word, idle, lock::Lock, logging, registry, stop};
use crate::{
    failure::{Doing as _, Failure, Result},
    printer::Printer,
    signal::Stop,
};

/// Serves until a signal, or, if private, until nobody needs it. Sandboxes live on.
pub(crate) async fn run(loaded: &Loaded, mode: Mode, printer: Printer) -> Result {
    let settings = &loaded.settings;
    logging::begin(&settings.log)?;
    if mode == Mode::Private {
        // Not the terminal's any more. It fails only for what is a session of its own already.
        let _ = setsid();
    }
    let place = Place::new(&settings.data_dir);
    place.make()?;
    let _lock = own(&place, mode).await?;
    let mut signals = Stop::new()?;

    let (listeners, address) = listen(&place, settings, mode).await?;
    let service = open(&place, settings).await?;
    let shutdown = CancellationToken::new();
    let api = atoll_api::Settings {
        hosts: settings.server.hosts.clone(),
        metrics: atoll_api::install_metrics().ok(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        closing: shutdown.clone(),
        port_timeout: settings.server.port_timeout,
    };
    let activity = idle::Activity::new();
    let router = idle::watched(atoll_api::router(service.clone(), api), activity.clone());
    let serving = tokio::spawn(atoll_api::serve(listeners, router, shutdown.clone()));
    let record = Record::of_this_process(mode, address, loaded);
    record.write(&place)?;
    announce(&record, &service, printer).await?;

    let idle_exit = (mode == Mode::Private).then_some(settings.server.idle_exit);
    loop {
        tokio::select! {
            asked = signals.asked() => {
                // What closed the terminal does not concern a server without one.
                if !(mode == Mode::Private && asked.hangup()) {
                    break;
                }
            }
            () = idle::wait(&service, &activity, idle_exit) => break,
        }
    }
    // Commands that come now start another one, which waits for the lock.
    Record::remove(&place);
    shutdown.cancel();
    let finishing = async {
        serving.await.doing(|| "serving broke off".into())?;
        service.shutdown().await;
        Ok(())
    };
    tokio::select! {
        finished = finishing => finished,
        // Asked twice: as if killed, which the next server copes with.
        _ = signals.asked() => Ok(()),
    }
}

/// Takes the data directory, from a private server if need be.
async fn own(place: &Place, mode: Mode) -> Result<Lock> {
    let busy = || Failure::new("another server uses this data directory");
    let deadline = std::time::Instant::now() + stop::PATIENCE;
    loop {
        if let Some(lock) = Lock::try_take(&place.lock())? {
            return Ok(lock);
        }
        match Record::read(place) {
            Some(other) if other.mode == Mode::Private && mode == Mode::Serve => {
                stop(place, &other).await?;
            }
            Some(other) => {
                return Err(busy()
                    .hint(format!("it is {other}; stop it, or choose another with --data-dir")));
            }
            // It is about to be ready, or about to be gone.
            None if std::time::Instant::now() > deadline => return Err(busy()),
            None => tokio::time::sleep(stop::AGAIN).await,
        }
    }
}

async fn listen(
    place: &Place,
    settings: &Settings,
    mode: Mode,
) -> Result<(Vec<Listener>, Option<std::net::SocketAddr>)> {
    let socket = UnixSocket::bind(place.socket()).doing(|| "cannot listen on the socket".into())?;
    let mut listeners = vec![Listener::Unix(socket)];
    if mode == Mode::Private {
        return Ok((listeners, None));
    }
    let wanted = settings.server.listen;
    let listener = TcpListener::bind(wanted).await.map_err(|error| {
        let failure = Failure::new(format!("cannot listen on {wanted}: {error}"));
        match error.kind() {
            std::io::ErrorKind::AddrInUse => {
                failure.hint("another program does; choose another with --listen")
            }
            _ => failure,
        }
    })?;
    let address = listener.local_addr().doing(|| "cannot tell the address".into())?;
    listeners.push(Listener::Tcp(listener, tls(settings)?));
    Ok((listeners, Some(address)))
}

fn tls(settings: &Settings) -> Result<Option<Tls>> {
    let Some((certificate, key)) = &settings.server.tls else { return Ok(None) };
    let read = |path: &std::path::Path| {
        std::fs::read(path).doing(|| format!("cannot read {}", path.display()))
    };
    Tls::from_pem(&read(certificate)?, &read(key)?)
        .map(Some)
        .map_err(|error| Failure::new(error.to_string()))
}

async fn open(place: &Place, settings: &Settings) -> Result<Service> {
    let store = Store::open(&place.store()).await.doing(|| "cannot open the records".into())?;
    let engines =
        registry::engines(place, settings).into_iter().fold(Engines::new(), Engines::with);
    Service::open(store, engines, decided(settings)).await.map_err(|error| {
        let failure = Failure::new(error.message);
        error.hint.into_iter().fold(failure, Failure::hint)
    })
}

/// The settings as the service wants them.
fn decided(settings: &Settings) -> atoll_service::Settings {
    let sessions = &settings.sessions;
    let mounts = settings
        .mounts
        .allow
        .iter()
        .map(|mount| AllowedMount { host: mount.path.clone(), writable: mount.writable });
    atoll_service::Settings {
        default_engine: sessions.engine.clone(),
        default_environment: sessions.environment.clone(),
        environments: Some(settings.environments_dir.clone()).filter(|path| path.is_dir()),
        allow_trusted: settings.engines.trust_local,
        mounts: mounts.collect(),
        default_limits: settings.limits.default,
        max_limits: settings.limits.max,
        session_timeout: sessions.timeout,
        max_session_timeout: sessions.max_timeout,
        execution_timeout: sessions.execution_timeout,
        max_execution_timeout: sessions.max_execution_timeout,
        idle_timeout: Some(sessions.idle).filter(|idle| !idle.is_zero()),
        max_sessions: sessions.max_sessions,
        keep_records: sessions.keep_records,
        ..atoll_service::Settings::default()
    }
}

/// Says that the server is there: to the command that started it, or to the person who did.
async fn announce(record: &Record, service: &Service, printer: Printer) -> Result {
    let Some(url) = &record.url else {
        Word::Ready.say();
        return Ok(());
    };
    printer.line(record, || format!("listening on {url}"))?;
    if service.keys().await.is_ok_and(|keys| keys.is_empty()) {
        printer.note("there is no API key yet, and every request over the network needs one");
        printer.hint("make one with `atoll key create NAME`");
    }
    Ok(())
}
