//! Guests that have the agent's user, because there is no other.
//!
//! The kernel would let them do to the agent's processes what they may do to their own. So every
//! call that acts on a process named by a number is refused for the agent's numbers, which are the
//! first of the pid namespace and never a guest's; and one that names it otherwise, by a descriptor
//! or behind a pointer, is refused altogether. The agent itself is the first process, to which its
//! own namespace's signals do nothing, whichever of its threads they name.

use std::collections::BTreeMap;

use super::{UNKNOWN, Verdict, rule::Rule};

/// Numbers of processes below this are the agent's. The kernel starts again from here when it has
/// come to the last number, and never below.
pub const OWN_PIDS: i32 = 300;

/// Changes what is known of each call to what holds for such guests.
pub(super) fn change(verdicts: &mut BTreeMap<u32, Verdict>) {
    for (number, rule) in RULES {
        verdicts.extend(u32::try_from(*number).ok().map(|n| (n, Verdict::Depends(*rule))));
    }
    // Takes a directory of `/proc` for a process, too. Programs then use `kill`.
    verdicts.extend(u32::try_from(libc::SYS_pidfd_send_signal).ok().map(|n| (n, UNKNOWN)));
}

const RULES: &[(libc::c_long, Rule)] = &[
    (libc::SYS_fcntl, Rule::Except(1, &[F_SETOWN, F_SETSIG, F_SETOWN_EX])),
    (
        libc::SYS_ioctl,
        Rule::Except(
            1,
            &[
                super::rule::TIOCSTI,
                super::rule::TIOCLINUX,
                super::rule::TIOCSETD,
                FIOSETOWN,
                SIOCSPGRP,
            ],
        ),
    ),
    // IOPRIO_WHO_PROCESS and IOPRIO_WHO_PGRP.
    (libc::SYS_ioprio_set, Rule::Itself(1, 2)),
    (libc::SYS_kill, Rule::Others(0, 0)),
    (libc::SYS_pidfd_open, Rule::Others(0, 0)),
    (libc::SYS_prlimit64, Rule::Limits),
    (libc::SYS_rt_sigqueueinfo, Rule::Others(0, 0)),
    (libc::SYS_rt_tgsigqueueinfo, Rule::Others(0, 1)),
    (libc::SYS_sched_setaffinity, Rule::Is(0, 0)),
    (libc::SYS_sched_setattr, Rule::Is(0, 0)),
    (libc::SYS_sched_setparam, Rule::Is(0, 0)),
    (libc::SYS_sched_setscheduler, Rule::Is(0, 0)),
    // PRIO_PROCESS and PRIO_PGRP.
    (libc::SYS_setpriority, Rule::Itself(0, 1)),
    (libc::SYS_tgkill, Rule::Others(0, 1)),
    (libc::SYS_tkill, Rule::Others(0, 0)),
];

/// By these a signal of one's choice is sent when something can be read.
const F_SETOWN: u32 = 8;
const F_SETSIG: u32 = 10;
const F_SETOWN_EX: u32 = 15;
const FIOSETOWN: u32 = 0x8901;
const SIOCSPGRP: u32 = 0x8902;

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::{
        super::{
            REFUSED,
            bpf::{
                Instruction,
                interpreter::{Call, run},
            },
            program, table,
        },
        *,
    };

    fn ask(number: libc::c_long, arguments: [u64; 6]) -> Verdict {
        static PROGRAM: LazyLock<Vec<Instruction>> = LazyLock::new(|| program(true));
        let number = u32::try_from(number).unwrap();
        run(&PROGRAM, Call { architecture: table::ARCHITECTURE, number, arguments })
    }

    /// As the kernel reads it, whatever the high half.
    fn int(value: i32) -> u64 {
        u64::from(value.cast_unsigned()) | 0xdead_0000_0000_0000
    }

    #[test]
    fn no_signal_goes_to_a_number_of_the_agents_or_to_everybody() {
        for call in [libc::SYS_kill, libc::SYS_tkill, libc::SYS_rt_sigqueueinfo] {
            for own in (-299..=-1).chain(1..300) {
                assert_eq!(ask(call, [int(own), 9, 0, 0, 0, 0]), REFUSED, "{call} {own}");
            }
            for other in [0, 300, 301, 32767, 4_194_303, -300, -301, -4_194_303] {
                assert_eq!(ask(call, [int(other), 9, 0, 0, 0, 0]), Verdict::Allow, "{other}");
            }
        }
        for call in [libc::SYS_tgkill, libc::SYS_rt_tgsigqueueinfo] {
            assert_eq!(ask(call, [int(300), int(301), 9, 0, 0, 0]), Verdict::Allow);
            assert_eq!(ask(call, [int(1), int(301), 9, 0, 0, 0]), REFUSED, "a thread of the agent");
            assert_eq!(ask(call, [int(300), int(3), 9, 0, 0, 0]), REFUSED);
        }
        assert_eq!(ask(libc::SYS_pidfd_open, [int(3), 0, 0, 0, 0, 0]), REFUSED);
        assert_eq!(ask(libc::SYS_pidfd_open, [int(300), 0, 0, 0, 0, 0]), Verdict::Allow);
        assert_eq!(ask(libc::SYS_pidfd_send_signal, [0; 6]), UNKNOWN);
    }

    #[test]
    fn what_is_set_about_a_process_is_set_by_itself() {
        for call in [
            libc::SYS_sched_setaffinity,
            libc::SYS_sched_setattr,
            libc::SYS_sched_setparam,
            libc::SYS_sched_setscheduler,
        ] {
            assert_eq!(ask(call, [int(0), 0, 0, 0, 0, 0]), Verdict::Allow);
            for other in [1, 2, 300, -1] {
                assert_eq!(ask(call, [int(other), 0, 0, 0, 0, 0]), REFUSED);
            }
        }
        for (call, words) in [(libc::SYS_setpriority, [0, 1]), (libc::SYS_ioprio_set, [1, 2])] {
            for which in 0..4 {
                let expected = if words.contains(&which) { Verdict::Allow } else { REFUSED };
                assert_eq!(ask(call, [int(which), int(0), 0, 0, 0, 0]), expected, "{call} {which}");
                assert_eq!(ask(call, [int(which), int(300), 0, 0, 0, 0]), REFUSED);
            }
        }
        let prlimit = |pid, new| ask(libc::SYS_prlimit64, [int(pid), 0, new, 0, 0, 0]);
        assert_eq!(prlimit(0, 0x7fff_0000_1000), Verdict::Allow);
        assert_eq!(prlimit(2, 0), Verdict::Allow, "only asks");
        assert_eq!(prlimit(2, 0x1000), REFUSED);
        assert_eq!(prlimit(2, 0x7fff_0000_0000), REFUSED, "a low half of zero");
    }

    #[test]
    fn no_file_is_made_to_send_signals() {
        let fcntl = |command| ask(libc::SYS_fcntl, [3, command, 0, 0, 0, 0]);
        for command in [8, 10, 15] {
            assert_eq!(fcntl(command), REFUSED);
        }
        for command in [0, 1, 2, 3, 4, 5, 6, 7, 9, 1024, 1030, 1031] {
            assert_eq!(fcntl(command), Verdict::Allow, "{command}");
        }
        let ioctl = |command| ask(libc::SYS_ioctl, [3, command, 0, 0, 0, 0]);
        for command in [0x8901, 0x8902, 0x5412, 0x541c, 0x5423] {
            assert_eq!(ioctl(command), REFUSED, "{command:x}");
        }
        assert_eq!(ioctl(0x5401), Verdict::Allow);
    }

    #[test]
    fn all_other_calls_are_as_for_other_guests() {
        let (usual, mut changed) = (table::verdicts(), table::verdicts());
        change(&mut changed);
        assert_eq!(usual.len(), changed.len());
        let different = usual.iter().filter(|(number, verdict)| changed[number] != **verdict);
        assert_eq!(different.count(), RULES.len() + 1);
    }
}
