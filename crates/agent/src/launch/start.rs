//! The agent's side: handing a command to the spawner, and talking to its keeper.

use std::{
    io::{self, IoSlice},
    mem::MaybeUninit,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    sync::Arc,
};

use atoll_agent_protocol::message::User;
use rustix::{
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    io::Errno,
    net::{
        AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
        SocketType, send, sendmsg, socketpair,
    },
    pipe::{PipeFlags, pipe_with},
};
use tokio::{
    io::{Interest, unix::AsyncFd},
    net::unix::pipe,
    sync::Semaphore,
};

use super::{
    job::Job,
    packet::{Order, Report},
    spawner::PARCEL,
    terminal::{Size, TERMINALS, Terminal},
};
use crate::sys;

/// The agent's connection to the spawner.
#[derive(Debug)]
pub(crate) struct Launcher {
    socket: AsyncFd<OwnedFd>,
    user: Option<User>,
    terminals: Arc<Semaphore>,
}

/// What a command's standard streams are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Streams {
    /// Three pipes; the input is empty unless it is kept open.
    Pipes {
        stdin: bool,
    },
    Terminal(Size),
}

/// Our end of a pipe or a terminal.
pub(crate) type Source = AsyncFd<OwnedFd>;

/// A command on its way, or running.
#[derive(Debug)]
pub(crate) struct Launched {
    pub(crate) keeper: Keeper,
    /// Tells why the program could not be started, or just ends if it could.
    pub(crate) error: pipe::Receiver,
    pub(crate) stdin: Option<Source>,
    pub(crate) stdout: Source,
    /// None with a terminal.
    pub(crate) stderr: Option<Source>,
    pub(crate) terminal: Option<Arc<Terminal>>,
}

/// What a command is given as its streams, and what is ours of them.
struct Ends {
    theirs: [OwnedFd; 3],
    stdin: Option<Source>,
    stdout: Source,
    stderr: Option<Source>,
    terminal: Option<Arc<Terminal>>,
}

/// The connection to a keeper. When it is dropped the keeper ends all it keeps.
#[derive(Debug, Clone)]
pub(crate) struct Keeper {
    socket: Arc<AsyncFd<OwnedFd>>,
}

impl Launcher {
    /// Two connected ends: one for the spawner, one for [`Launcher::new`].
    pub(crate) fn connection() -> io::Result<(OwnedFd, OwnedFd)> {
        let flags = SocketFlags::CLOEXEC;
        Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
    }

    /// For guests of this user, or the agent's own.
    pub(crate) fn new(socket: OwnedFd, user: Option<User>) -> io::Result<Self> {
        let terminals = Arc::new(Semaphore::new(TERMINALS));
        Ok(Self { socket: watched(socket)?, user, terminals })
    }

    /// Returns when the spawner is gone.
    pub(crate) async fn ended(&self) {
        // It never says anything, so whatever there is to read is the end.
        let _ = self.socket.readable().await;
    }

    /// Sends a command on its way.
    pub(crate) async fn launch(&self, job: &Job, streams: Streams) -> io::Result<Launched> {
        let (keeper, keeper_end) = Self::connection()?;
        let job = job.to_file()?;
        let (error, error_end) = pipe_with(PipeFlags::CLOEXEC)?;
        let Ends { theirs: [stdin_end, stdout_end, stderr_end], stdin, stdout, stderr, terminal } =
            match streams {
                Streams::Pipes { stdin } => self.pipes(stdin)?,
                Streams::Terminal(size) => self.terminal(size)?,
            };
        let launched = Launched {
            keeper: Keeper { socket: Arc::new(watched(keeper)?) },
            error: pipe::Receiver::from_owned_fd(error)?,
            stdin,
            stdout,
            stderr,
            terminal,
        };
        self.send([
            keeper_end.as_fd(),
            job.as_fd(),
            error_end.as_fd(),
            stdin_end.as_fd(),
            stdout_end.as_fd(),
            stderr_end.as_fd(),
        ])
        .await?;
        Ok(launched)
    }

    fn pipes(&self, kept_open: bool) -> io::Result<Ends> {
        let pipe = || pipe_with(PipeFlags::CLOEXEC);
        let made = self.as_guest(|| Ok([pipe()?, pipe()?, pipe()?]))?;
        let [(stdin_end, stdin), (stdout, stdout_end), (stderr, stderr_end)] = made;
        Ok(Ends {
            theirs: [stdin_end, stdout_end, stderr_end],
            stdin: kept_open.then(|| watched(stdin)).transpose()?,
            stdout: watched(stdout)?,
            stderr: Some(watched(stderr)?),
            terminal: None,
        })
    }

    fn terminal(&self, size: Size) -> io::Result<Ends> {
        let terminal = self.as_guest(|| Terminal::open(size, &self.terminals))?;
        let slave = || terminal.slave().try_clone();
        Ok(Ends {
            theirs: [slave()?, slave()?, slave()?],
            stdin: Some(watched(terminal.master()?)?),
            stdout: watched(terminal.master()?)?,
            stderr: None,
            terminal: Some(Arc::new(terminal)),
        })
    }

    /// Makes something that belongs to the guests' user, who else could use but not open it: by
    /// `/dev/stderr`, say.
    fn as_guest<T>(&self, make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        match self.user {
            Some(User { uid, gid }) => sys::as_file_system_user(uid, gid, make),
            None => make(),
        }
    }

    async fn send(&self, fds: [BorrowedFd<'_>; PARCEL]) -> io::Result<()> {
        self.socket
            .async_io(Interest::WRITABLE, |socket| {
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PARCEL))];
                let mut control = SendAncillaryBuffer::new(&mut space);
                if !control.push(SendAncillaryMessage::ScmRights(&fds)) {
                    return Err(io::Error::from(Errno::NOBUFS));
                }
                sendmsg(socket, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL)?;
                Ok(())
            })
            .await
    }
}

impl Keeper {
    /// What the keeper says next; None when it is gone.
    pub(crate) async fn report(&self) -> Option<Report> {
        let receive = |socket: &OwnedFd| Ok(Report::receive(socket)?);
        self.socket.async_io(Interest::READABLE, receive).await.ok().flatten()
    }

    /// Orders something. An order to a keeper that is gone is lost, as its end will show.
    pub(crate) async fn order(&self, order: Order) {
        let packet = order.to_packet();
        let attempt = |socket: &OwnedFd| Ok(send(socket, &packet, SendFlags::NOSIGNAL)?);
        let _ = self.socket.async_io(Interest::WRITABLE, attempt).await;
    }
}

fn watched(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    fcntl_setfl(&fd, fcntl_getfl(&fd)? | OFlags::NONBLOCK)?;
    sys::watch(fd)
}
