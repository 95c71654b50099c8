//! Calls that are allowed or refused by what they are given.
//!
//! Only numbers can be looked at, never what a pointer points to; the kernel takes all of these as
//! 32 bits, so the low half is what counts.

use super::{
    REFUSED, Verdict,
    alike::OWN_PIDS,
    bpf::{self, Instruction, answer, argument, jump_if_at_least, jump_if_equal, load},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// None of these bits in this argument.
    Without(u32, u32),
    /// `open` and `openat`, by the place of their flags, which the mode follows: none of
    /// [`SET_IDS`] in it if they make a file. If they do not, anything may stand there.
    Open(u32),
    /// `ioctl`: not those that type for the user of a terminal or load a line discipline.
    Ioctl,
    /// `personality`: none but the usual one, and without address randomisation.
    Personality,
    /// `prctl`: no seccomp filter.
    Prctl,
    /// This argument is none of these.
    Except(u32, &'static [u32]),
    /// This argument is this.
    Is(u32, u32),
    /// These arguments, which may be the same one, name no process of the agent's, nor one of its
    /// groups; see [`alike`](super::alike).
    Others(u32, u32),
    /// `setpriority` and the like: of the caller or, in another of these words, its group.
    Itself(u32, u32),
    /// `prlimit64`: the caller's own, or nothing is set.
    Limits,
    /// `socket` and `socketpair`: local, Internet, and questions about routes.
    Socket,
}

/// The bits of a mode that lend the owner's rights to whoever runs the file.
///
/// Where a directory of the host is mounted for a guest to write, its files are the host's too,
/// and their owner may be the host's root there, where none of the sandbox's walls stand.
pub(super) const SET_IDS: u32 = libc::S_ISUID | libc::S_ISGID;

/// Memory from the host's store of huge pages, which no control group of ours bounds.
pub(super) const MAP_HUGETLB: u32 = libc::MAP_HUGETLB.cast_unsigned();
pub(super) const MFD_HUGETLB: u32 = libc::MFD_HUGETLB;
pub(super) const SHM_HUGETLB: u32 = libc::SHM_HUGETLB.cast_unsigned();

/// `O_CREAT`, and what is new in `O_TMPFILE`, which is `O_DIRECTORY` too.
const MAKING: u32 = (libc::O_CREAT | (libc::O_TMPFILE & !libc::O_DIRECTORY)).cast_unsigned();

pub(super) const NAMESPACES: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET)
    .cast_unsigned();

pub(super) const TIOCSTI: u32 = 0x5412;
pub(super) const TIOCLINUX: u32 = 0x541c;
pub(super) const TIOCSETD: u32 = 0x5423;

/// `personality` with this only asks.
const ASK: u32 = 0xffff_ffff;
const NO_RANDOM_ADDRESSES: u32 = 0x0004_0000;

const SET_SECCOMP: u32 = 22;

const UNIX: u32 = 1;
const INET: u32 = 2;
const INET6: u32 = 10;
const NETLINK: u32 = 16;

const STREAM: u32 = 1;
const DATAGRAM: u32 = 2;
/// What is said of a socket in the same argument as its type.
const BESIDE_TYPE: u32 = (libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC).cast_unsigned();

pub(super) fn instructions(rule: Rule) -> Vec<Instruction> {
    match rule {
        Rule::Without(index, bits) => without(index, bits),
        Rule::Open(flags) => {
            let mut all = vec![
                load(argument(flags)),
                bpf::and(MAKING),
                jump_if_equal(0, 0, 1),
                answer(Verdict::Allow),
            ];
            all.extend(without(flags + 1, SET_IDS));
            all
        }
        Rule::Ioctl => {
            let mut all = vec![load(argument(1))];
            all.extend(all_but(&[TIOCSTI, TIOCLINUX, TIOCSETD]));
            all
        }
        Rule::Personality => {
            let mut all = vec![load(argument(0))];
            all.extend(only(&[0, ASK, NO_RANDOM_ADDRESSES]));
            all
        }
        Rule::Prctl => {
            let mut all = vec![load(argument(0))];
            all.extend(all_but(&[SET_SECCOMP]));
            all
        }
        Rule::Socket => socket(),
        Rule::Except(index, values) => {
            let mut all = vec![load(argument(index))];
            all.extend(all_but(values));
            all
        }
        Rule::Is(index, value) => {
            let mut all = vec![load(argument(index))];
            all.extend(only(&[value]));
            all
        }
        Rule::Others(one, other) => others(one, other),
        Rule::Itself(process, group) => {
            let mut all = vec![
                load(argument(0)),
                jump_if_equal(process, 2, 0),
                jump_if_equal(group, 1, 0),
                answer(REFUSED),
                load(argument(1)),
            ];
            all.extend(only(&[0]));
            all
        }
        Rule::Limits => {
            // The new limit is a pointer, of two halves.
            let mut all = vec![
                load(argument(0)),
                jump_if_equal(0, 0, 1),
                answer(Verdict::Allow),
                load(argument(2)),
                jump_if_equal(0, 1, 0),
                answer(REFUSED),
                load(argument(2) + 4),
            ];
            all.extend(only(&[0]));
            all
        }
    }
}

fn socket() -> Vec<Instruction> {
    // The type's own, TCP, UDP: not the many others, each a part of the kernel nobody needs.
    let mut internet = vec![
        load(argument(1)),
        bpf::and(!BESIDE_TYPE),
        jump_if_equal(STREAM, 2, 0),
        jump_if_equal(DATAGRAM, 1, 0),
        answer(REFUSED),
        load(argument(2)),
    ];
    internet.extend(only(&[0, 6, 17]));
    // Routes and addresses.
    let mut netlink = vec![load(argument(2))];
    netlink.extend(only(&[0]));
    let mut all = vec![
        load(argument(0)),
        jump_if_equal(UNIX, 0, 1),
        answer(Verdict::Allow),
        jump_if_equal(INET, 1, 0),
        jump_if_equal(INET6, 0, short(&internet)),
    ];
    all.extend(&internet);
    all.push(jump_if_equal(NETLINK, 1, 0));
    all.push(answer(REFUSED));
    all.extend(netlink);
    all
}

fn others(one: u32, other: u32) -> Vec<Instruction> {
    let check = |index| {
        [
            load(argument(index)),
            // The caller's own group, where that is meant by it.
            jump_if_equal(0, 3, 0),
            jump_if_at_least(OWN_PIDS.cast_unsigned(), 0, 1),
            jump_if_at_least(OWN_PIDS.wrapping_neg().cast_unsigned() + 1, 0, 1),
            answer(REFUSED),
        ]
    };
    let mut all = check(one).to_vec();
    if other != one {
        all.extend(check(other));
    }
    all.push(answer(Verdict::Allow));
    all
}

fn without(index: u32, bits: u32) -> Vec<Instruction> {
    let mut all = vec![load(argument(index)), bpf::and(bits)];
    all.extend(only(&[0]));
    all
}

/// Allows these values of what was loaded.
fn only(values: &[u32]) -> Vec<Instruction> {
    matching(values, Verdict::Allow, REFUSED)
}

/// Refuses these values of what was loaded.
fn all_but(values: &[u32]) -> Vec<Instruction> {
    matching(values, REFUSED, Verdict::Allow)
}

fn matching(values: &[u32], yes: Verdict, no: Verdict) -> Vec<Instruction> {
    let each = values.iter().flat_map(|value| [jump_if_equal(*value, 0, 1), answer(yes)]);
    each.chain([answer(no)]).collect()
}

/// A length that one jump can skip: these are short.
fn short(instructions: &[Instruction]) -> u8 {
    u8::try_from(instructions.len()).unwrap_or(u8::MAX)
}
