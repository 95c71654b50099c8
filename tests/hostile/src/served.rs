//! The real server over the engine under test, as a client meets it: sessions, service, router and
//! sockets. It has a runtime of its own, so that its tasks can be counted.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use atoll_api::{Listener, UnixSocket, router, serve};
use atoll_engine::{Engine, Event, Offsets, Sandbox};
use atoll_service::{Engines, Service, Store};
use atoll_types::{
    execution::CommandLine,
    id::{ProcessId, SessionId},
    limits::Limits,
    process::StartProcess,
    quantity::Size,
    session::CreateSession,
};
use bytes::Bytes;
use futures_util::StreamExt as _;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    runtime::{Handle, Runtime},
};
use tokio_util::sync::CancellationToken;

use crate::{
    check::claim,
    counted::{Counted, Taken},
    ground::PATIENCE,
    naive::NaiveServer,
    stage::Stage,
};

/// How long a program behind a port may say nothing.
const SILENCE: Duration = Duration::from_secs(2);

/// A server with one session, and what it took from its engine.
#[derive(Debug)]
pub struct Served {
    pub session: SessionId,
    pub taken: Taken,
    engine: Arc<dyn Engine>,
    service: Service,
    sandbox: Arc<dyn Sandbox>,
    socket: PathBuf,
    closing: CancellationToken,
    runtime: Option<Runtime>,
    _directory: TempDir,
}

impl Served {
    /// Does something with a server, and ends that server also if it fails.
    ///
    /// In a control, what clients attach to is served by somebody who trusts them to go on reading.
    pub async fn during(stage: &Stage, body: impl AsyncFnOnce(&Self) -> Result<()>) -> Result<()> {
        let served = Self::start(stage).await.context("start a server")?;
        let result = body(&served).await;
        result.and(served.end().await)
    }

    async fn start(stage: &Stage) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("atoll-served-").tempdir()?;
        let place = directory.path().join("engine");
        std::fs::create_dir(&place)?;
        let taken = Taken::default();
        let inner = stage.world.subject.engine(&place, &[])?;
        let engine: Arc<dyn Engine> = Arc::new(Counted { inner, taken: taken.clone() });
        let socket = directory.path().join("socket");
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let settings = stage.world.subject.settings(atoll_service::Settings {
            default_engine: engine.name().to_owned(),
            end_sessions_on_shutdown: true,
            ..atoll_service::Settings::default()
        });
        let closing = CancellationToken::new();
        let opening = {
            let (engine, socket, closing) = (Arc::clone(&engine), socket.clone(), closing.clone());
            let weak = stage.weak;
            async move {
                let engines = Engines::new().with(Arc::clone(&engine));
                let service = Service::open(Store::in_memory().await?, engines, settings).await?;
                let made = service.create_session(request()).await?;
                let sandbox = engine.attach(&made.sandbox_id).await?.context("its sandbox")?;
                if weak {
                    NaiveServer::listen(&socket, Arc::clone(&sandbox), closing)?;
                } else {
                    let settings = atoll_api::Settings {
                        closing: closing.clone(),
                        port_timeout: SILENCE,
                        ..atoll_api::Settings::default()
                    };
                    let listener = Listener::Unix(UnixSocket::bind(&socket)?);
                    let router = router(service.clone(), settings);
                    tokio::spawn(serve(vec![listener], router, closing));
                }
                anyhow::Ok((service, made.session_id, sandbox))
            }
        };
        let (service, session, sandbox) = runtime.spawn(opening).await??;
        Ok(Self {
            session,
            taken,
            engine,
            service,
            sandbox,
            socket,
            closing,
            runtime: Some(runtime),
            _directory: directory,
        })
    }

    /// Starts a line of shell in the session.
    pub async fn start_process(&self, line: &str) -> Result<ProcessId> {
        self.launch(line, false).await
    }

    /// The same, with its standard input kept open.
    pub async fn start_deaf(&self, line: &str) -> Result<ProcessId> {
        self.launch(line, true).await
    }

    async fn launch(&self, line: &str, stdin: bool) -> Result<ProcessId> {
        let (service, session) = (self.service.clone(), self.session.clone());
        let command = Some(CommandLine::Shell(line.to_owned()));
        let request = StartProcess { command, stdin, ..StartProcess::default() };
        let started =
            self.handle()?.spawn(async move { service.start_process(&session, request).await });
        Ok(started.await??.id)
    }

    /// The session's sandbox, past the server.
    pub fn sandbox(&self) -> &Arc<dyn Sandbox> {
        &self.sandbox
    }

    /// Tasks of the server that have not ended.
    pub fn tasks(&self) -> Result<usize> {
        Ok(self.handle()?.metrics().num_alive_tasks())
    }

    /// Sends a request about the session.
    pub async fn client(&self, method: &str, path: &str, body: &str) -> Result<UnixStream> {
        let mut stream = self.head(method, path, "application/json", body.len()).await?;
        stream.write_all(body.as_bytes()).await?;
        Ok(stream)
    }

    /// Begins to upload so many bytes.
    pub async fn feeder(&self, path: &str, length: usize) -> Result<UnixStream> {
        self.head("POST", path, "application/octet-stream", length).await
    }

    async fn head(
        &self,
        method: &str,
        path: &str,
        kind: &str,
        length: usize,
    ) -> Result<UnixStream> {
        let mut stream = UnixStream::connect(&self.socket).await?;
        let session = &self.session;
        let head = format!(
            "{method} /api/sessions/{session}{path} HTTP/1.1\r\nHost: localhost\r\n\
             Connection: close\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await?;
        Ok(stream)
    }

    /// Asks a program behind a port, with these lines of a head, and reads the whole answer.
    pub async fn ask_port(&self, port: u16, lines: &str) -> Result<String> {
        let mut stream = UnixStream::connect(&self.socket).await?;
        let session = &self.session;
        let head = format!(
            "GET /api/sessions/{session}/ports/{port}/x HTTP/1.1\r\nHost: localhost\r\n\
             Connection: close\r\n{lines}\r\n"
        );
        stream.write_all(head.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.take(1 << 20).read_to_end(&mut answer).await?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    /// Puts the probe into the session, and starts it as a program that answers.
    pub async fn answering(&self, port: u16, way: &str) -> Result<ProcessId> {
        let files = self.sandbox.files();
        let probe = Bytes::from_static(crate::world::PROBE);
        if files.stat("probe").await.is_err() {
            let content = futures_util::stream::iter([Ok(probe)]).boxed();
            files.write("probe", content).await?;
            files.set_mode("probe", 0o755).await?;
        }
        let process = self.start_process(&format!("exec ./probe answer {port} {way}")).await?;
        let mut events = self.sandbox.attach(process, Offsets::default()).await?;
        let first = tokio::time::timeout(PATIENCE, events.next()).await.context("no word")?;
        let listens = matches!(first, Some(Ok(Event::Output { .. })));
        anyhow::ensure!(listens, "it does not listen: {first:?}");
        Ok(process)
    }

    /// A client that follows a process and has had the first of it.
    pub async fn attached(&self, process: ProcessId) -> Result<UnixStream> {
        let path = format!("/processes/{process}/attach");
        let mut stream = self.client("GET", &path, "").await?;
        let mut heard = Vec::new();
        let listen = async {
            loop {
                let end = heard.windows(4).position(|window| window == b"\r\n\r\n");
                if end.is_some_and(|end| heard.len() > end + 4) {
                    anyhow::ensure!(
                        heard.starts_with(b"HTTP/1.1 200"),
                        "{}",
                        String::from_utf8_lossy(&heard)
                    );
                    return Ok(());
                }
                anyhow::ensure!(stream.read_buf(&mut heard).await? > 0, "the server hung up");
            }
        };
        tokio::time::timeout(PATIENCE, listen).await.context("no answer")??;
        Ok(stream)
    }

    fn handle(&self) -> Result<&Handle> {
        Ok(self.runtime.as_ref().context("the server has ended")?.handle())
    }

    /// Ends the server with its session; nothing of it may be left.
    async fn end(mut self) -> Result<()> {
        let engine = Arc::clone(&self.engine);
        let runtime = self.runtime.take().context("the server has ended")?;
        let service = self.service.clone();
        self.closing.cancel();
        let left = runtime
            .spawn(async move {
                service.shutdown().await;
                engine.list().await
            })
            .await;
        drop(self);
        tokio::task::spawn_blocking(move || runtime.shutdown_timeout(Duration::from_secs(10)))
            .await?;
        let left = left??;
        claim(left.is_empty(), || format!("I4: the engine still lists {left:?}"))
    }
}

impl Drop for Served {
    /// Only if the check was cut off: what it made goes all the same.
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        let (service, closing) = (self.service.clone(), self.closing.clone());
        std::thread::spawn(move || {
            closing.cancel();
            runtime.block_on(service.shutdown());
            runtime.shutdown_timeout(Duration::from_secs(10));
        });
    }
}

/// A small sandbox whose processes may write much.
fn request() -> CreateSession {
    let limits = Limits { output: Some(Size(64 << 20)), ..Limits::default() };
    CreateSession { limits: Some(limits), ..CreateSession::default() }
}
