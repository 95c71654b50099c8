//! What a guest may try against the agent's processes, whose user it has.

use std::{
    process,
    sync::Arc,
    time::{Duration, Instant},
};

use atoll_engine::{Command, ProcessId, Reason, Sandbox};
use atoll_namespace::Weakness;
use tokio::runtime::Runtime;

use crate::{
    Test,
    stage::{Stage, make, run, runs, text, wait_until},
};

pub(crate) const TESTS: [Test; 7] = [
    ("attacks::the_agents_processes_have_the_first_numbers", numbers),
    ("attacks::the_kernel_does_not_give_those_numbers_again", never_again),
    ("attacks::no_signal_reaches_the_agents_processes", signals),
    ("attacks::nothing_is_set_about_the_agents_processes", settings),
    ("attacks::nothing_is_read_of_the_agents_processes", secrets),
    ("attacks::a_neighbour_and_the_host_are_out_of_reach", neighbours),
    ("attacks::without_the_filter_a_keeper_can_be_killed", control),
];

/// The agent, its spawner, the keeper of a command that runs, and that of the attack, as a shell
/// knows it: its number is not always the next, for the last attack's keeper may still be there.
const AGENTS: [&str; 4] = ["1", "2", "3", "$PPID"];

/// A sandbox in which something runs, whose keeper is number 3.
async fn victim(stage: &Stage, name: &str) -> (Arc<dyn Sandbox>, ProcessId) {
    let sandbox = make(&stage.engine, name).await;
    let process = sandbox.start(Command::new(["sleep", "1000"])).await.unwrap();
    assert_eq!(text(&sandbox, "tr -d '\\0' < /proc/3/cmdline").await, "atoll-agent");
    (sandbox, process)
}

/// Neither the agent nor the command that runs has noticed anything, and both still can be ended.
async fn unharmed(sandbox: &Arc<dyn Sandbox>, process: ProcessId) {
    assert_eq!(text(sandbox, "echo alive").await, "alive\n");
    let listed = sandbox.processes().await.unwrap();
    let seen = listed.iter().find(|listed| listed.id == process).unwrap();
    assert!(seen.outcome.is_none(), "{seen:?}");
    sandbox.kill(process).await.unwrap();
    let killed = "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; done 2> /dev/null";
    assert!(!text(sandbox, killed).await.contains("sleep 1000"));
}

async fn refused(sandbox: &Arc<dyn Sandbox>, line: &str) {
    let output = run(sandbox, line).await;
    let told = String::from_utf8_lossy(&output.stderr).to_lowercase();
    let no = ["not permitted", "permission denied", "failed to"].iter().any(|no| told.contains(no));
    assert!(no && !output.outcome.succeeded(), "{line}: {output:?}");
}

fn numbers(stage: &Stage, runtime: &Runtime) {
    runtime.block_on(async {
        let (sandbox, process) = victim(stage, "a").await;
        let line =
            "for p in /proc/[0-9]*; do echo ${p#/proc/} $(tr -d '\\0' < $p/cmdline); done; echo $$";
        let seen = text(&sandbox, line).await;
        let (all, own) = seen.trim_end().rsplit_once('\n').unwrap();
        assert!(own.parse::<u32>().unwrap() >= 300, "{seen}");
        for line in all.lines() {
            let (number, name) = line.split_once(' ').unwrap_or((line, ""));
            let number: u32 = number.parse().unwrap();
            // Who has just ended has no name.
            assert!(name.is_empty() || (number < 300) == (name == "atoll-agent"), "{seen}");
        }
        unharmed(&sandbox, process).await;
    });
}

/// What all of this rests on: past the last number the kernel goes on at 300.
fn never_again(_: &Stage, _: &Runtime) {
    let line = "cd /proc/sys/kernel; echo $(($(cat pid_max) - 3)) > ns_last_pid; \
                for i in 1 2 3 4 5 6; do sh -c 'echo $$'; done";
    let output = process::Command::new("unshare")
        .args(["--user", "--map-root-user", "--fork", "--pid", "--mount-proc", "sh", "-c", line])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let numbers: Vec<u32> = text.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(numbers.iter().min(), Some(&300), "{numbers:?}");
}

fn signals(stage: &Stage, runtime: &Runtime) {
    runtime.block_on(async {
        let (sandbox, process) = victim(stage, "a").await;
        let kill = "perl -e 'kill(shift, shift) or die \"$!\\n\"' --";
        for number in AGENTS {
            for signal in [libc::SIGKILL, libc::SIGSTOP, libc::SIGSEGV, libc::SIGCHLD, 34] {
                refused(&sandbox, &format!("{kill} {signal} {number}")).await;
                // Whoever is in that group.
                refused(&sandbox, &format!("{kill} {signal} -{number}")).await;
            }
        }
        refused(&sandbox, "kill -9 -1").await;
        // By a file that sends one when it can be read.
        let file = "perl -e 'use Fcntl; pipe(R, W); my $how = shift; \
                    fcntl(R, $how, 3) or die \"$!\\n\"' --";
        for how in [8, 10, 15] {
            refused(&sandbox, &format!("{file} {how}")).await;
        }
        unharmed(&sandbox, process).await;
    });
}

fn settings(stage: &Stage, runtime: &Runtime) {
    runtime.block_on(async {
        let (sandbox, process) = victim(stage, "a").await;
        for number in AGENTS {
            refused(&sandbox, &format!("prlimit --pid {number} --cpu=1:1")).await;
            refused(&sandbox, &format!("prlimit --pid {number} --nofile=3:3")).await;
            refused(&sandbox, &format!("renice -n 19 -p {number}")).await;
            refused(&sandbox, &format!("chrt --idle --pid 0 {number}")).await;
            refused(&sandbox, &format!("taskset --pid 1 {number}")).await;
            refused(&sandbox, &format!("ionice -c 3 -p {number}")).await;
            refused(&sandbox, &format!("echo 1000 > /proc/{number}/oom_score_adj")).await;
            refused(&sandbox, &format!("echo 19 > /proc/{number}/autogroup")).await;
        }
        refused(&sandbox, "renice -n 19 -u 1000").await;
        refused(&sandbox, "renice -n 19 -g 2").await;
        // Of itself a guest may set all that.
        text(&sandbox, "ulimit -n 20 && nice -n 5 true && ionice -c 3 true").await;
        text(&sandbox, "chrt --idle 0 taskset 1 true && echo 500 > /proc/self/oom_score_adj").await;
        unharmed(&sandbox, process).await;
    });
}

fn secrets(stage: &Stage, runtime: &Runtime) {
    runtime.block_on(async {
        let (sandbox, process) = victim(stage, "a").await;
        for number in AGENTS {
            for name in ["environ", "mem", "maps", "auxv", "stack", "syscall"] {
                refused(&sandbox, &format!("head -c 1 /proc/{number}/{name}")).await;
            }
            for name in ["fd", "map_files", "fdinfo"] {
                refused(&sandbox, &format!("ls /proc/{number}/{name}/")).await;
            }
            for name in ["exe", "cwd", "root", "ns/pid"] {
                refused(&sandbox, &format!("readlink -v /proc/{number}/{name}")).await;
            }
        }
        unharmed(&sandbox, process).await;
    });
}

fn neighbours(stage: &Stage, runtime: &Runtime) {
    let (near, far) = ("1000.0000123", "1000.0000456");
    let _host = Bystander(process::Command::new("sleep").arg(far).spawn().unwrap());
    runtime.block_on(async {
        let neighbour = make(&stage.engine, "neighbour").await;
        neighbour.start(Command::new(["sleep", near])).await.unwrap();
        wait_until("both run", || runs(near) && runs(far));

        let sandbox = make(&stage.engine, "a").await;
        let seen = text(&sandbox, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '").await;
        assert!(!seen.contains(near) && !seen.contains(far), "{seen}");
        refused(&sandbox, "kill -9 -1").await;
        // Every number there may be; those of its own shell are not among them.
        let all = "perl -e 'for (2 .. 32768) { kill(9, $_) if $_ != $$ && $_ != getppid() }'";
        run(&sandbox, all).await;
        assert!(runs(near) && runs(far));
        assert_eq!(text(&neighbour, "echo alive").await, "alive\n");
        assert_eq!(text(&sandbox, "echo alive").await, "alive\n");
        // One's own socket, which the host has under that very user, is nowhere to be found.
        let found = "find / -name socket -o -name record.json 2> /dev/null | grep -v ^/usr; :";
        assert_eq!(text(&sandbox, found).await, "");
    });
}

/// A process of the host's that is ended with the test.
struct Bystander(process::Child);

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn control(stage: &Stage, runtime: &Runtime) {
    runtime.block_on(async {
        let engine = stage.weak(&[Weakness::Seccomp]);
        let sandbox = make(&engine, "a").await;
        let process = sandbox.start(Command::new(["sleep", "1000"])).await.unwrap();
        text(&sandbox, "kill -9 3").await;
        let deadline = Instant::now() + Duration::from_secs(30);
        // The agent goes on all the same, and nothing of the command is left.
        loop {
            let listed = sandbox.processes().await.unwrap();
            let seen = listed.into_iter().find(|listed| listed.id == process).unwrap();
            let left = text(&sandbox, "grep -ls ^sleep /proc/[0-9]*/comm; :").await;
            if let Some(outcome) = seen.outcome.filter(|_| left.is_empty()) {
                assert_eq!(outcome.reason, Reason::EngineFault, "{outcome:?}");
                break;
            }
            assert!(Instant::now() < deadline, "{left}");
        }
    });
}
