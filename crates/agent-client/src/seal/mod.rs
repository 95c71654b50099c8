//! Which system calls a sealed guest may make: a seccomp program for the agent to install.
//!
//! Only what is known is allowed ([`table`]): a number this list does not have answers as it
//! would on a kernel without it, so that a newer kernel opens no new door. What is known and
//! refused answers `EPERM`. A few calls are allowed by their arguments ([`rule`]). Another
//! architecture's calls (32-bit x86 through `int 0x80`, x32) answer `ENOSYS`, all of them:
//! a list of one architecture's numbers means nothing for another's.
//!
//! Written out here rather than compiled by a library, because the library at hand checks neither
//! x32 nor says `ENOSYS` for one half and `EPERM` for the other. The tests run the program, in an
//! interpreter, over every number.

mod alike;
mod bpf;
mod rule;
mod table;

use std::sync::LazyLock;

pub use alike::OWN_PIDS;

use bpf::Instruction;
use rule::Rule;

/// The answer to a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Allow,
    /// Not done; answers this error, or, if it is zero, as if it had been done.
    Errno(i32),
    /// It depends on the arguments.
    Depends(Rule),
}

const UNKNOWN: Verdict = Verdict::Errno(libc::ENOSYS);
const REFUSED: Verdict = Verdict::Errno(libc::EPERM);

/// The bit that marks a call of the x32 architecture; higher than any number of any other.
const FOREIGN: u32 = 0x4000_0000;

/// The program, as `struct sock_filter` values.
pub fn seccomp() -> Vec<u8> {
    static PROGRAM: LazyLock<Vec<u8>> = LazyLock::new(|| bpf::bytes(&program(false)));
    PROGRAM.clone()
}

/// The program for guests that have the agent's user; its processes must have the numbers below
/// [`OWN_PIDS`].
pub fn seccomp_alike() -> Vec<u8> {
    static PROGRAM: LazyLock<Vec<u8>> = LazyLock::new(|| bpf::bytes(&program(true)));
    PROGRAM.clone()
}

fn program(alike: bool) -> Vec<Instruction> {
    let mut program = vec![
        bpf::load(bpf::ARCHITECTURE),
        bpf::jump_if_equal(table::ARCHITECTURE, 1, 0),
        bpf::answer(UNKNOWN),
        bpf::load(bpf::NUMBER),
    ];
    program.extend(bpf::choose(&ranges(alike)));
    program
}

/// The verdict over all numbers, as the first number of each stretch that has the same.
fn ranges(alike: bool) -> Vec<(u32, Verdict)> {
    let mut known = table::verdicts();
    if alike {
        alike::change(&mut known);
    }
    let end = known.keys().last().map_or(0, |last| last + 1);
    let mut ranges: Vec<(u32, Verdict)> = Vec::new();
    for number in (0..=end).chain([FOREIGN]) {
        let verdict = known.get(&number).copied().unwrap_or(UNKNOWN);
        if ranges.last().is_none_or(|(_, last)| *last != verdict) {
            ranges.push((number, verdict));
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::{
        bpf::interpreter::{Call, run},
        *,
    };

    const NATIVE: u32 = table::ARCHITECTURE;

    fn ask(architecture: u32, number: u32, arguments: [u64; 6]) -> Verdict {
        static PROGRAM: LazyLock<Vec<Instruction>> = LazyLock::new(|| program(false));
        run(&PROGRAM, Call { architecture, number, arguments })
    }

    fn native(number: libc::c_long, arguments: [u64; 6]) -> Verdict {
        ask(NATIVE, u32::try_from(number).unwrap(), arguments)
    }

    #[test]
    fn the_program_says_what_the_table_says_of_every_number() {
        let table = table::verdicts();
        for number in (0..1024).chain([4095, 65535, 0x3fff_ffff]) {
            let expected = table.get(&number).copied().unwrap_or(UNKNOWN);
            if let Verdict::Depends(_) = expected {
                continue;
            }
            assert_eq!(ask(NATIVE, number, [0; 6]), expected, "{number}");
        }
    }

    #[test]
    fn other_architectures_have_no_calls_at_all() {
        const I386: u32 = 0x4000_0003;
        for number in 0..1024 {
            assert_eq!(ask(I386, number, [0; 6]), UNKNOWN);
            assert_eq!(ask(NATIVE, number | 0x4000_0000, [0; 6]), UNKNOWN, "x32 {number}");
            assert_eq!(ask(NATIVE, number | 0x8000_0000, [0; 6]), UNKNOWN);
        }
    }

    #[test]
    fn a_process_may_be_cloned_but_no_namespace() {
        let thread = 0x003d_0f00;
        assert_eq!(native(libc::SYS_clone, [thread, 0, 0, 0, 0, 0]), Verdict::Allow);
        assert_eq!(native(libc::SYS_clone, [17, 0, 0, 0, 0, 0]), Verdict::Allow);
        for bit in [17, 25, 26, 27, 28, 29, 30] {
            assert_eq!(
                native(libc::SYS_clone, [(1 << bit) | 0x11, 0, 0, 0, 0, 0]),
                REFUSED,
                "{bit}"
            );
        }
        assert_eq!(native(libc::SYS_clone3, [0; 6]), UNKNOWN);
        assert_eq!(native(libc::SYS_unshare, [0; 6]), REFUSED);
        assert_eq!(native(libc::SYS_setns, [0; 6]), REFUSED);
    }

    #[test]
    fn sockets_are_local_internet_or_route_queries() {
        let (stream, datagram, raw) = (1, 2, 3);
        for call in [libc::SYS_socket, libc::SYS_socketpair] {
            for family in 0..64 {
                let expected =
                    if [1, 2, 10, 16].contains(&family) { Verdict::Allow } else { REFUSED };
                assert_eq!(native(call, [family, stream, 0, 0, 0, 0]), expected, "{family}");
            }
        }
        let socket =
            |family, kind, protocol| native(libc::SYS_socket, [family, kind, protocol, 0, 0, 0]);
        // With SOCK_CLOEXEC | SOCK_NONBLOCK.
        assert_eq!(socket(2, stream | 0o2_004_000, 6), Verdict::Allow);
        assert_eq!(socket(10, datagram, 17), Verdict::Allow);
        assert_eq!(socket(2, stream, 262), REFUSED, "MPTCP");
        assert_eq!(socket(2, stream, 132), REFUSED, "SCTP");
        for family in [2, 10] {
            for protocol in [1, 58] {
                assert_eq!(socket(family, datagram, protocol), REFUSED, "ping {protocol}");
            }
            for kind in (0..16).filter(|kind| ![stream, datagram].contains(kind)) {
                assert_eq!(socket(family, kind, 0), REFUSED, "type {kind}");
                assert_eq!(socket(family, kind | 0o2_004_000, 6), REFUSED, "type {kind}");
            }
        }
        assert_eq!(socket(1, 5, 0), Verdict::Allow, "local packets in sequence");
        assert_eq!(socket(16, raw, 0), Verdict::Allow, "routes");
        for protocol in 1..32 {
            assert_eq!(socket(16, raw, protocol), REFUSED, "netlink {protocol}");
        }
        // The kernel looks at the low half only, so the filter must too.
        assert_eq!(socket(1 << 32 | 0x28, stream, 0), REFUSED);
    }

    /// A call with these of its arguments.
    fn with(number: libc::c_long, given: &[(usize, u64)]) -> Verdict {
        let mut arguments = [0; 6];
        for (index, value) in given {
            arguments[*index] = *value;
        }
        native(number, arguments)
    }

    #[test]
    fn no_file_is_made_that_lends_its_owners_rights() {
        // With the place of the mode.
        let mut calls = vec![
            (libc::SYS_fchmod, 1),
            (libc::SYS_fchmodat, 2),
            (libc::SYS_fchmodat2, 2),
            (libc::SYS_mkdirat, 2),
            (libc::SYS_mknodat, 2),
        ];
        #[cfg(target_arch = "x86_64")]
        calls.extend([
            (libc::SYS_chmod, 1),
            (libc::SYS_creat, 1),
            (libc::SYS_mkdir, 1),
            (libc::SYS_mknod, 1),
        ]);
        for (call, place) in calls {
            for fine in [0, 0o644, 0o1777, 0o100_755] {
                assert_eq!(with(call, &[(place, fine)]), Verdict::Allow, "{call} {fine:o}");
            }
            for bits in [0o4755, 0o2755, 0o6000, 0o104_755, 0xdead_0000_0000 | 0o4755] {
                assert_eq!(with(call, &[(place, bits)]), REFUSED, "{call} {bits:o}");
            }
        }
        assert_eq!(native(libc::SYS_openat2, [0; 6]), UNKNOWN);
    }

    #[test]
    fn opening_makes_no_file_that_lends_its_owners_rights() {
        let mut calls = vec![(libc::SYS_openat, 2)];
        #[cfg(target_arch = "x86_64")]
        calls.push((libc::SYS_open, 1));
        for (call, place) in calls {
            let open = |flags, mode| with(call, &[(place, flags), (place + 1, mode)]);
            for making in [0o100, 0o301, 0o20_200_002, 0o20_000_000, 0xdead_0000_0000 | 0o102] {
                assert_eq!(open(making, 0o644), Verdict::Allow, "{call} {making:o}");
                assert_eq!(open(making, 0o4755), REFUSED, "{call} {making:o}");
                assert_eq!(open(making, 0o2755), REFUSED, "{call} {making:o}");
            }
            // Without making anything, the mode is whatever happened to be there.
            for opening in [0, 2, 0o200_000, 0o2_000_000] {
                assert_eq!(open(opening, 0xffff_ffff), Verdict::Allow, "{call} {opening:o}");
            }
        }
    }

    #[test]
    fn huge_pages_are_the_hosts() {
        assert_eq!(with(libc::SYS_mmap, &[(3, 0x22)]), Verdict::Allow);
        assert_eq!(with(libc::SYS_mmap, &[(3, 0x4_0022)]), REFUSED);
        assert_eq!(with(libc::SYS_memfd_create, &[(1, 3)]), Verdict::Allow);
        assert_eq!(with(libc::SYS_memfd_create, &[(1, 5)]), REFUSED);
        assert_eq!(with(libc::SYS_shmget, &[(2, 0o1600)]), Verdict::Allow);
        assert_eq!(with(libc::SYS_shmget, &[(2, 0o5600)]), REFUSED);
    }

    #[test]
    fn a_terminal_takes_no_typing_from_programs() {
        let ioctl = |command| native(libc::SYS_ioctl, [0, command, 0, 0, 0, 0]);
        assert_eq!(ioctl(0x5401), Verdict::Allow, "TCGETS");
        assert_eq!(ioctl(0x5412), REFUSED, "TIOCSTI");
        assert_eq!(ioctl(0xdead_0000_5412), REFUSED, "TIOCSTI under a high half");
        assert_eq!(ioctl(0x541c), REFUSED, "TIOCLINUX");
        assert_eq!(ioctl(0x5423), REFUSED, "TIOCSETD");
    }

    #[test]
    fn filters_and_personalities_are_not_for_guests() {
        assert_eq!(native(libc::SYS_prctl, [22, 2, 0, 0, 0, 0]), REFUSED, "PR_SET_SECCOMP");
        assert_eq!(native(libc::SYS_prctl, [15, 0, 0, 0, 0, 0]), Verdict::Allow, "PR_SET_NAME");
        let personality = |value| native(libc::SYS_personality, [value, 0, 0, 0, 0, 0]);
        for fine in [0, 0xffff_ffff, 0x0004_0000] {
            assert_eq!(personality(fine), Verdict::Allow, "{fine:x}");
        }
        assert_eq!(personality(0x0040_0000), REFUSED, "READ_IMPLIES_EXEC");
    }

    #[test]
    fn the_program_is_short_enough_for_the_kernel() {
        for alike in [false, true] {
            let length = program(alike).len();
            assert!(length <= 4096, "{length}");
        }
        assert_eq!(seccomp().len(), program(false).len() * 8);
    }
}
