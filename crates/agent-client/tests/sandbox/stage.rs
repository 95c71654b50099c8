//! A warden whose agent is a function of the test's.

use std::{
    fmt,
    ops::ControlFlow::{self, Break, Continue},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use atoll_agent_client::{AgentSandbox, Counters, Link, Warden};
use atoll_agent_protocol::{
    message::{
        Attach, Done, Ended, Hello, OfProcess, Output, Process, Request, Response, VERSION,
        request::Call, response::Answer,
    },
    mux::{Mux, Stream},
};
use atoll_engine::{Command, Event, Events, Limits, ProcessId, Result, Sandbox};
use futures_util::{StreamExt as _, future::BoxFuture};
use tokio::{io::DuplexStream, sync::Notify};
use tokio_util::sync::CancellationToken;

/// What stands at the other end of a link; the first has number 0.
type Peer = Box<dyn Fn(usize, DuplexStream) + Send + Sync>;

pub(crate) struct Place {
    peer: Peer,
    pub(crate) counters: Mutex<Counters>,
    pub(crate) links: AtomicUsize,
    pub(crate) destroyed: AtomicUsize,
    pub(crate) gone: CancellationToken,
    /// The agent's ends of all links.
    ends: Arc<Mutex<Vec<Mux>>>,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Place")
    }
}

#[async_trait]
impl Warden for Place {
    async fn connect(&self) -> Result<Box<dyn Link>> {
        let (near, far) = tokio::io::duplex(64 << 10);
        (self.peer)(self.links.fetch_add(1, Ordering::SeqCst), far);
        Ok(Box::new(near))
    }

    fn has_own_loopback(&self) -> bool {
        true
    }

    fn counters(&self) -> Counters {
        *self.counters.lock().unwrap()
    }

    async fn ended(&self) {
        self.gone.cancelled().await;
    }

    async fn destroy(&self) -> Result<()> {
        self.destroyed.fetch_add(1, Ordering::SeqCst);
        self.gone.cancel();
        Ok(())
    }
}

impl Place {
    pub(crate) fn new(peer: impl Fn(usize, DuplexStream) + Send + Sync + 'static) -> Arc<Self> {
        Self::with(Arc::default(), peer)
    }

    fn with(
        ends: Arc<Mutex<Vec<Mux>>>,
        peer: impl Fn(usize, DuplexStream) + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            peer: Box::new(peer),
            counters: Mutex::new(Counters {
                cpu_time: Some(Duration::ZERO),
                oom_kills: Some(0),
                pids_refused: Some(0),
                ..Counters::default()
            }),
            links: AtomicUsize::new(0),
            destroyed: AtomicUsize::new(0),
            gone: CancellationToken::new(),
            ends,
        })
    }

    /// A place whose agent answers calls so.
    pub(crate) fn answering(
        answer: impl Fn(Call, Stream) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let answer = Arc::new(answer);
        let ends = Arc::<Mutex<Vec<Mux>>>::default();
        Self::with(Arc::clone(&ends), move |_, io| {
            let mux = Mux::server(io);
            ends.lock().unwrap().push(mux.clone());
            serve(mux, Arc::clone(&answer));
        })
    }

    /// Cuts every link.
    pub(crate) fn cut(&self) {
        for mux in self.ends.lock().unwrap().drain(..) {
            mux.close();
        }
    }

    pub(crate) async fn connect_to(self: &Arc<Self>) -> Result<Arc<AgentSandbox>> {
        self.connect_with(Limits::default()).await
    }

    pub(crate) async fn connect_with(
        self: &Arc<Self>,
        limits: Limits,
    ) -> Result<Arc<AgentSandbox>> {
        let warden: Arc<dyn Warden> = Arc::clone(self) as Arc<dyn Warden>;
        AgentSandbox::connect("box".parse().unwrap(), warden, limits).await
    }

    pub(crate) fn destroyed(&self) -> usize {
        self.destroyed.load(Ordering::SeqCst)
    }
}

/// Answers every call as it is told.
fn serve<A>(mux: Mux, answer: Arc<A>)
where
    A: Fn(Call, Stream) -> BoxFuture<'static, ()> + Send + Sync + 'static,
{
    tokio::spawn(async move {
        while let Some(stream) = mux.accept().await {
            let answer = Arc::clone(&answer);
            tokio::spawn(async move {
                if let Ok(Some(Request { call: Some(call) })) = stream.recv().await {
                    answer(call, stream).await;
                }
            });
        }
    });
}

/// What an honest agent with one process, number 1, keeps.
#[derive(Default)]
pub(crate) struct Script {
    note: Mutex<Option<Vec<u8>>>,
    pub(crate) ended: Mutex<Option<Ended>>,
    changed: Notify,
}

impl Script {
    pub(crate) fn end(&self, ended: Ended) {
        self.ended.lock().unwrap().get_or_insert(ended);
        self.changed.notify_waiters();
    }

    /// Answers as an honest agent whose process writes "hello" and runs until it is ended.
    pub(crate) async fn answer(self: Arc<Self>, call: Call, stream: Stream) {
        match call {
            Call::Hello(_) => say(&stream, Answer::Hello(Hello { version: VERSION })).await,
            Call::Start(start) => {
                *self.note.lock().unwrap() = Some(start.note);
                say(&stream, Answer::Started(OfProcess { process: 1 })).await;
            }
            Call::Processes(_) => {
                let note = self.note.lock().unwrap().clone();
                let ended = *self.ended.lock().unwrap();
                if let Some(note) = note {
                    let process = Process { process: 1, note, ended, ..Process::default() };
                    say(&stream, Answer::Process(process)).await;
                }
            }
            Call::Attach(Attach { stdout, .. }) => {
                if let Some(rest) = b"hello".get(usize::try_from(stdout).unwrap_or(usize::MAX)..)
                    && !rest.is_empty()
                {
                    say(&stream, output(1, stdout, rest)).await;
                }
                let ended = self.wait().await;
                say(&stream, Answer::Ended(ended)).await;
            }
            Call::Kill(_) => {
                self.end(killed());
                say(&stream, Answer::Done(Done::default())).await;
            }
            _ => say(&stream, Answer::Done(Done::default())).await,
        }
        stream.finish();
    }

    async fn wait(&self) -> Ended {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if let Some(ended) = *self.ended.lock().unwrap() {
                return ended;
            }
            changed.await;
        }
    }
}

pub(crate) async fn say(stream: &Stream, answer: Answer) {
    // The host may have hung up.
    let _ = stream.send(&Response { answer: Some(answer) }).await;
}

pub(crate) fn output(stream: u32, offset: u64, data: &[u8]) -> Answer {
    Answer::Output(Output { stream, offset, data: data.to_vec().into() })
}

pub(crate) fn exited(code: i32) -> Ended {
    Ended { exit_code: Some(code), duration_us: 1, ..Ended::default() }
}

pub(crate) fn killed() -> Ended {
    Ended { signal: Some(9), cause: 3, duration_us: 1, ..Ended::default() }
}

/// A place with an honest agent, except for the calls that `other` takes.
pub(crate) fn honest_but(
    script: &Arc<Script>,
    other: impl Fn(Call, Stream) -> ControlFlow<BoxFuture<'static, ()>, (Call, Stream)>
    + Send
    + Sync
    + 'static,
) -> Arc<Place> {
    let script = Arc::clone(script);
    Place::answering(move |call, stream| match other(call, stream) {
        Break(answer) => answer,
        Continue((call, stream)) => Box::pin(Arc::clone(&script).answer(call, stream)),
    })
}

pub(crate) fn honest(script: &Arc<Script>) -> Arc<Place> {
    honest_but(script, |call, stream| Continue((call, stream)))
}

pub(crate) async fn start(sandbox: &AgentSandbox) -> ProcessId {
    sandbox.start(Command::new(["true"])).await.unwrap()
}

/// The events there are, the last of them an end or an error.
pub(crate) async fn all(events: Events) -> Vec<Result<Event>> {
    let all = tokio::time::timeout(Duration::from_mins(2), events.collect::<Vec<_>>()).await;
    all.expect("an end within two minutes")
}
