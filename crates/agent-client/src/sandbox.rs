//! A sandbox as the engine contract has it, over an agent and a warden.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{Arc, Weak},
    time::{Duration, SystemTime},
};

use async_trait::async_trait;
use atoll_agent_protocol::{
    message::{self, Disk, Nothing, OfProcess, request::Call, response::Answer},
    mux::{MAX_MESSAGE, Stream},
};
use atoll_engine::{
    Command, Error, ErrorKind, Events, Files, Limits, MAX_TUNNELS, Offsets, Ports, Process,
    ProcessId, Result, Sandbox, SandboxId, TerminalSize, Usage,
};
use bytes::Bytes;
use tokio::{sync::Semaphore, task::AbortHandle};
use tokio_util::sync::CancellationToken;

use crate::{
    Warden,
    events::Reader,
    failure,
    ledger::{Ledger, Watched},
    line::{self, Line, within},
    note::Note,
    order::{self, Order},
    verdict::Asked,
};

/// How long an agent may take to answer.
pub(crate) const ANSWER: Duration = Duration::from_secs(30);
/// How long an agent may take to end a process, before its sandbox is ended instead.
pub(crate) const GRACE: Duration = Duration::from_secs(5);
/// How long the end of a link may be ahead of the news that the sandbox has ended.
const NEWS: Duration = Duration::from_secs(2);
/// Bytes of standard input in one message.
const INPUT: usize = 256 << 10;
/// Processes an agent may list, and their bytes.
const MAX_PROCESSES: usize = 10_000;
const MAX_LISTING: usize = 32 << 20;
/// Processes whose end is waited for at one time; leaves half of a line's streams for calls.
const MAX_WAITING: usize = 128;

/// One sandbox with an agent in it.
///
/// Everything the agent says is checked and bounded. A link that breaks is made again as long as
/// the warden says the sandbox lives.
#[derive(Debug)]
pub struct AgentSandbox {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    id: SandboxId,
    pub(crate) warden: Arc<dyn Warden>,
    pub(crate) limits: Limits,
    /// Calls that are soon answered, and waiting for ends.
    pub(crate) calls: Line,
    /// What may stand still for long: output, input, files. Apart, so that it holds up no call.
    pub(crate) flows: Line,
    /// Connections to ports. Apart, so that however many there are, files and output have room.
    pub(crate) tunnels: Line,
    /// One for each tunnel there may be.
    pub(crate) tunnel_places: Arc<Semaphore>,
    pub(crate) ledger: Ledger,
    pub(crate) waiting: Semaphore,
    /// The sandbox has ended.
    pub(crate) ended: CancellationToken,
    vigil: AbortHandle,
}

impl AgentSandbox {
    /// Connects to the agent, which must answer within ten seconds
    /// ([`TimedOut`](ErrorKind::TimedOut) otherwise). `limits` are those the sandbox was made with.
    ///
    /// Processes that run there already are watched from now on as if started from here.
    pub async fn connect(
        id: SandboxId,
        warden: Arc<dyn Warden>,
        limits: Limits,
    ) -> Result<Arc<Self>> {
        let ended = CancellationToken::new();
        let vigil = {
            let (warden, ended) = (Arc::clone(&warden), ended.clone());
            tokio::spawn(async move {
                warden.ended().await;
                ended.cancel();
            })
        };
        let inner = Arc::new(Inner {
            id,
            calls: Line::new(Arc::clone(&warden)),
            flows: Line::new(Arc::clone(&warden)),
            tunnels: Line::new(Arc::clone(&warden)),
            tunnel_places: Arc::new(Semaphore::new(MAX_TUNNELS)),
            warden,
            limits,
            ledger: Ledger::default(),
            waiting: Semaphore::new(MAX_WAITING),
            ended,
            vigil: vigil.abort_handle(),
        });
        inner.living(inner.calls.ready()).await?;
        let adopting = Arc::downgrade(&inner);
        tokio::spawn(async move { adopt(adopting).await });
        Ok(Arc::new(Self { inner }))
    }
}

/// Takes over what runs there already. Of a sandbox that was just made, that is nothing.
async fn adopt(inner: Weak<Inner>) {
    let Some(inner) = inner.upgrade() else { return };
    if let Err(error) = inner.processes().await {
        tracing::debug!(sandbox = %inner.id, %error, "processes not adopted yet");
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.vigil.abort();
    }
}

impl Inner {
    /// Does something as long as the sandbox lives; afterwards everything is
    /// [`Lost`](ErrorKind::Lost).
    pub(crate) async fn living<T>(&self, what: impl Future<Output = Result<T>>) -> Result<T> {
        let result = tokio::select! {
            biased;
            () = self.ended.cancelled() => return Err(failure::lost()),
            result = what => result,
        };
        match result {
            Err(error) if failure::is_of_link(&error) => {
                // The link ends with the sandbox, often a moment before that is known.
                let news = tokio::time::timeout(NEWS, self.ended.cancelled()).await;
                Err(if news.is_ok() { failure::lost() } else { error })
            }
            result => result,
        }
    }

    /// One question, one answer.
    pub(crate) async fn ask(&self, call: Call, limit: Duration) -> Result<Answer> {
        self.living(within(limit, async {
            let stream = self.calls.begin(call).await?;
            stream.finish();
            line::answer(&stream).await
        }))
        .await
    }

    /// One question whose answer is that it is done.
    pub(crate) async fn order(&self, call: Call, limit: Duration) -> Result<()> {
        match self.ask(call, limit).await? {
            Answer::Done(_) => Ok(()),
            _ => Err(failure::nonsense()),
        }
    }

    pub(crate) async fn disk(&self) -> Result<Disk> {
        match self.ask(Call::Disk(Nothing {}), GRACE).await? {
            Answer::Disk(disk) if disk.used <= disk.total => Ok(disk),
            _ => Err(failure::nonsense()),
        }
    }

    async fn start(self: &Arc<Self>, command: Command) -> Result<ProcessId> {
        let order = Order::new(command, &self.limits, &self.warden.counters())?;
        let (call, note) = order.into_parts();
        let answer = self.ask(call, ANSWER).await?;
        let Answer::Started(OfProcess { process }) = answer else {
            return Err(failure::nonsense());
        };
        self.enter(ProcessId(process), note, None)?;
        Ok(ProcessId(process))
    }

    /// Begins to watch a process, if it is not watched yet.
    fn enter(
        self: &Arc<Self>,
        id: ProcessId,
        note: Note,
        ended: Option<message::Ended>,
    ) -> Result<Arc<Watched>> {
        let (watched, new) = self.ledger.enter(id, note).map_err(|_| failure::nonsense())?;
        if let Some(ended) = ended {
            watched.hear(ended);
        }
        if new {
            tokio::spawn(Arc::clone(self).follow(Arc::clone(&watched)));
        }
        Ok(watched)
    }

    /// A process of this sandbox, also one that another host started.
    pub(crate) async fn find(self: &Arc<Self>, id: ProcessId) -> Result<Arc<Watched>> {
        if let Some(watched) = self.ledger.find(id) {
            return Ok(watched);
        }
        self.processes().await?;
        let unknown = || Error::not_found(format!("there is no process {id}"));
        self.ledger.find(id).ok_or_else(unknown)
    }

    /// All processes the agent knows, by number, each with its entry.
    pub(crate) async fn processes(
        self: &Arc<Self>,
    ) -> Result<BTreeMap<ProcessId, (message::Process, Arc<Watched>)>> {
        let listed = self.living(within(ANSWER, self.listed())).await?;
        let mut processes = BTreeMap::new();
        for process in listed {
            let id = ProcessId(process.process);
            let watched = self.enter(id, Note::read(&process.note), process.ended)?;
            processes.insert(id, (process, watched));
        }
        Ok(processes)
    }

    async fn listed(&self) -> Result<Vec<message::Process>> {
        let stream = self.calls.begin(Call::Processes(Nothing {})).await?;
        stream.set_limit(MAX_MESSAGE);
        stream.finish();
        let (mut listed, mut bytes) = (Vec::new(), 0);
        while let Some(answer) = line::next(&stream).await? {
            let Answer::Process(process) = answer else { return Err(failure::nonsense()) };
            // Even an empty word takes its place.
            bytes += process.argv.iter().map(|word| word.len() + 32).sum::<usize>();
            if listed.len() == MAX_PROCESSES || bytes > MAX_LISTING {
                return Err(failure::nonsense());
            }
            listed.push(process);
        }
        Ok(listed)
    }

    /// Ends a process and its descendants, if need be with the whole sandbox.
    pub(crate) async fn end(self: Arc<Self>, watched: Arc<Watched>, why: Asked) -> Result<()> {
        watched.ask(why);
        let call = Call::Kill(OfProcess { process: watched.id.0 });
        let killed = within(GRACE, async {
            loop {
                match self.order(call.clone(), GRACE).await {
                    Err(error) if failure::is_of_link(&error) => {
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                    result => return result,
                }
            }
        });
        let Err(error) = killed.await else { return Ok(()) };
        if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Invalid | ErrorKind::Lost) {
            return Err(error);
        }
        tracing::warn!(sandbox = %self.id, %error, "the agent ends no process: ending the sandbox");
        self.destroy().await
    }

    pub(crate) async fn destroy(&self) -> Result<()> {
        self.warden.destroy().await?;
        self.ended.cancel();
        Ok(())
    }

    pub(crate) fn id(&self) -> &SandboxId {
        &self.id
    }

    async fn write_stdin(self: &Arc<Self>, id: ProcessId, data: Bytes) -> Result<()> {
        let watched = self.find(id).await?;
        let call = Call::WriteStdin(message::WriteStdin { process: id.0, data });
        let written = async {
            let stream: Stream = self.flows.begin(call).await?;
            stream.finish();
            line::answer(&stream).await
        };
        // It waits as long as the process does not read, but not for one that has ended.
        let over = async {
            watched.settled().await;
            tokio::time::sleep(GRACE).await;
        };
        let answer = self.living(async {
            tokio::select! {
                answer = written => answer,
                () = over => Err(failure::silence()),
            }
        });
        match answer.await? {
            Answer::Done(_) => Ok(()),
            _ => Err(failure::nonsense()),
        }
    }
}

#[async_trait]
impl Sandbox for AgentSandbox {
    fn id(&self) -> &SandboxId {
        &self.inner.id
    }

    async fn start(&self, command: Command) -> Result<ProcessId> {
        // On its own, so that a process is watched also if nobody waits for its number.
        let inner = Arc::clone(&self.inner);
        tokio::spawn(async move { inner.start(command).await })
            .await
            .unwrap_or_else(|error| Err(Error::internal("starting failed").because(error)))
    }

    async fn attach(&self, process: ProcessId, from: Offsets) -> Result<Events> {
        if self.inner.ended.is_cancelled() {
            return Err(failure::lost());
        }
        let watched = self.inner.find(process).await?;
        Ok(Reader::new(Arc::clone(&self.inner), watched, from).events())
    }

    async fn write_stdin(&self, process: ProcessId, mut data: Bytes) -> Result<()> {
        loop {
            let part = data.split_to(data.len().min(INPUT));
            self.inner.write_stdin(process, part).await?;
            if data.is_empty() {
                return Ok(());
            }
        }
    }

    async fn close_stdin(&self, process: ProcessId) -> Result<()> {
        self.inner.order(Call::CloseStdin(OfProcess { process: process.0 }), ANSWER).await
    }

    async fn resize(&self, process: ProcessId, size: TerminalSize) -> Result<()> {
        let size = Some(order::size(size)?);
        self.inner.order(Call::Resize(message::Resize { process: process.0, size }), ANSWER).await
    }

    async fn signal(&self, process: ProcessId, signal: i32) -> Result<()> {
        if !(1..=64).contains(&signal) {
            return Err(Error::invalid(format!("{signal} is not a signal: they are 1 to 64")));
        }
        let call = Call::Signal(message::Signal { process: process.0, signal });
        self.inner.order(call, ANSWER).await
    }

    async fn kill(&self, process: ProcessId) -> Result<()> {
        let watched = self.inner.find(process).await?;
        // On its own, so that nobody who gives up waiting leaves a process half ended.
        tokio::spawn(Arc::clone(&self.inner).end(watched, Asked::Cancel))
            .await
            .unwrap_or_else(|error| Err(Error::internal("killing failed").because(error)))
    }

    async fn processes(&self) -> Result<Vec<Process>> {
        let mut processes = Vec::new();
        for (id, (process, watched)) in self.inner.processes().await? {
            let outcome = match process.ended {
                None => watched.outcome(),
                Some(_) => Some(within(ANSWER, async { Ok(watched.settled().await) }).await?),
            };
            let terminal = process.terminal.map(order::size_told).transpose()?;
            let started = Duration::from_micros(process.started_us);
            let started = SystemTime::UNIX_EPOCH.checked_add(started);
            processes.push(Process {
                id,
                argv: process.argv,
                started: started.unwrap_or(SystemTime::UNIX_EPOCH),
                terminal,
                written: Offsets { stdout: process.stdout, stderr: process.stderr },
                outcome,
            });
        }
        Ok(processes)
    }

    fn files(&self) -> &dyn Files {
        self
    }

    fn ports(&self) -> Option<&dyn Ports> {
        self.inner.warden.has_own_loopback().then_some(self)
    }

    async fn usage(&self) -> Result<Usage> {
        let disk = match self.inner.disk().await {
            Err(error) if error.kind() == ErrorKind::Lost => return Err(error),
            disk => disk.ok(),
        };
        let counters = self.inner.warden.counters();
        Ok(Usage {
            cpu_time: counters.cpu_time,
            memory: counters.memory,
            peak_memory: counters.peak_memory,
            pids: counters.pids,
            disk_used: disk.map(|disk| disk.used),
            disk_total: disk.map(|disk| disk.total),
        })
    }

    async fn ended(&self) {
        self.inner.ended.cancelled().await;
    }

    async fn destroy(&self) -> Result<()> {
        self.inner.destroy().await
    }
}
