//! The parent of one command and of all it leaves behind.

use std::{
    collections::HashSet,
    os::fd::{AsFd as _, OwnedFd},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::{Errno, read},
    process::{Pid, WaitOptions, getpid, set_child_subreaper, wait},
};

use super::{
    guest::{self, Guests, Step},
    job::Job,
    numbers,
    packet::{Order, Report},
    spawner::Parcel,
    tree,
};
use crate::sys::{self, Fork};

/// Starts the command of `parcel` and keeps it to its end; never returns.
pub(crate) fn run(parcel: Parcel, guests: &Guests) -> ! {
    let Parcel { socket, job, error, stdio } = parcel;
    let started = (|| {
        let children = sys::child_signals()?;
        set_child_subreaper(Some(getpid()))?;
        let program = guest::Program::new(Job::from_file(&job)?)?;
        match sys::fork()? {
            Fork::Parent(main) => Ok((children, main)),
            Fork::Child => {
                if let Err(cause) = numbers::check_guest(guests.own_pids) {
                    Step::Fork.tell(&cause, error.as_fd());
                    sys::exit(127);
                }
                guest::become_program(&program, &stdio, error.as_fd(), guests)
            }
        }
    })();
    match started {
        Ok((children, main)) => {
            // Theirs now: were they open here too, nobody would see them closed.
            drop((job, error, stdio));
            let proc = &guests.proc;
            Keeper { socket, children, proc, main, ended: false, killing: false }.keep()
        }
        Err(cause) => {
            Step::Fork.tell(&cause, error.as_fd());
            sys::exit(1)
        }
    }
}

struct Keeper<'a> {
    socket: OwnedFd,
    children: OwnedFd,
    proc: &'a OwnedFd,
    main: Pid,
    ended: bool,
    killing: bool,
}

impl Keeper<'_> {
    fn keep(mut self) -> ! {
        loop {
            let mut ready = [
                PollFd::new(&self.socket, PollFlags::IN),
                PollFd::new(&self.children, PollFlags::IN),
            ];
            match poll(&mut ready, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => sys::exit(1),
            }
            let asked = !ready[0].revents().is_empty();
            if !ready[1].revents().is_empty() {
                let mut buffer = [0; 1024];
                let _ = read(&self.children, &mut buffer);
            }
            // Exits first: an order then finds things as they are.
            if !self.reap() {
                Report::Gone.send(&self.socket);
                sys::exit(0);
            }
            if asked {
                match Order::receive(&self.socket) {
                    Ok(Some(order)) => self.obey(order),
                    Err(Errno::INTR | Errno::AGAIN) => {}
                    Ok(None) | Err(_) => self.clean_up(),
                }
            }
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Kill => {
                let done = self.end();
                Report::Killed(done).send(&self.socket);
                if done {
                    Report::Gone.send(&self.socket);
                    sys::exit(0);
                }
            }
            // Only this process waits for the command, so its pid is its own until `ended`.
            Order::Signal(signal) => {
                let done = !self.ended && sys::send_signal(self.main, signal).is_ok();
                Report::Signalled(done).send(&self.socket);
            }
        }
    }

    /// The agent is gone, and with it the sandbox: leave nothing behind.
    fn clean_up(&mut self) -> ! {
        while !self.end() {}
        sys::exit(0)
    }

    fn end(&mut self) -> bool {
        self.killing = true;
        let proc = self.proc;
        tree::end(proc, getpid(), &HashSet::new(), || self.reap())
    }

    /// Waits for all that have ended, and says whether any child is left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.main && !self.ended => {
                    self.ended = true;
                    let (status, killing) = (status.as_raw(), self.killing);
                    Report::Exited { status, killing }.send(&self.socket);
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }
}
