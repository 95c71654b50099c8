//! Calls that are allowed or refused by what they are given.
//!
//! Only numbers can be looked at, never what a pointer points to; the kernel takes all of these as
//! 32 bits, so the low half is what counts.

use super::{
    REFUSED, Verdict,
    bpf::{self, Instruction, answer, argument, jump_if_equal, load},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// `clone`: processes and threads, no namespaces.
    Clone,
    /// `ioctl`: not those that type for the user of a terminal or load a line discipline.
    Ioctl,
    /// `personality`: none but the usual one, and without address randomisation.
    Personality,
    /// `prctl`: no seccomp filter.
    Prctl,
    /// `socket` and `socketpair`: local, Internet, and questions about routes.
    Socket,
}

const NAMESPACES: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET)
    .cast_unsigned();

const TIOCSTI: u32 = 0x5412;
const TIOCLINUX: u32 = 0x541c;
const TIOCSETD: u32 = 0x5423;

/// `personality` with this only asks.
const ASK: u32 = 0xffff_ffff;
const NO_RANDOM_ADDRESSES: u32 = 0x0004_0000;

const SET_SECCOMP: u32 = 22;

const UNIX: u32 = 1;
const INET: u32 = 2;
const INET6: u32 = 10;
const NETLINK: u32 = 16;

pub(super) fn instructions(rule: Rule) -> Vec<Instruction> {
    match rule {
        Rule::Clone => {
            let mut all = vec![load(argument(0)), bpf::and(NAMESPACES)];
            all.extend(only(&[0]));
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
    }
}

fn socket() -> Vec<Instruction> {
    // Any; ICMP, TCP, UDP, ICMPv6: not the many others, each a part of the kernel nobody needs.
    let mut internet = vec![load(argument(2))];
    internet.extend(only(&[0, 1, 6, 17, 58]));
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
