//! The few instructions of classic BPF a seccomp program needs.

use super::{Verdict, rule};

/// `struct sock_filter`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Instruction {
    code: u16,
    if_true: u8,
    if_false: u8,
    value: u32,
}

/// Offsets in `struct seccomp_data`.
pub(super) const NUMBER: u32 = 0;
pub(super) const ARCHITECTURE: u32 = 4;

/// The offset of the low half of an argument, on a little-endian machine.
pub(super) const fn argument(index: u32) -> u32 {
    16 + 8 * index
}

const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_GREATER_OR_EQUAL: u16 = 0x35;
const RETURN: u16 = 0x06;

const ALLOW: u32 = 0x7fff_0000;
const ERRNO: u32 = 0x0005_0000;

pub(super) fn load(offset: u32) -> Instruction {
    Instruction { code: LOAD, if_true: 0, if_false: 0, value: offset }
}

pub(super) fn and(mask: u32) -> Instruction {
    Instruction { code: AND, if_true: 0, if_false: 0, value: mask }
}

/// Skips so many instructions.
pub(super) fn jump_if_equal(value: u32, if_true: u8, if_false: u8) -> Instruction {
    Instruction { code: JUMP_IF_EQUAL, if_true, if_false, value }
}

/// Skips so many instructions; compares without a sign.
pub(super) fn jump_if_at_least(value: u32, if_true: u8, if_false: u8) -> Instruction {
    Instruction { code: JUMP_IF_GREATER_OR_EQUAL, if_true, if_false, value }
}

/// The end of the program for a call with this verdict, which depends on nothing.
pub(super) fn answer(verdict: Verdict) -> Instruction {
    let value = match verdict {
        Verdict::Allow => ALLOW,
        Verdict::Errno(errno) => ERRNO | errno.cast_unsigned(),
        // Rules end in answers; they are not answers. Refuse rather than allow.
        Verdict::Depends(_) => ERRNO | libc::EPERM.cast_unsigned(),
    };
    Instruction { code: RETURN, if_true: 0, if_false: 0, value }
}

/// Finds, by halving, the stretch the loaded number is in; each is given by its first number.
pub(super) fn choose(ranges: &[(u32, Verdict)]) -> Vec<Instruction> {
    match ranges {
        [] => vec![answer(super::UNKNOWN)],
        [(_, Verdict::Depends(rule))] => rule::instructions(*rule),
        [(_, verdict)] => vec![answer(*verdict)],
        _ => {
            let (low, high) = ranges.split_at(ranges.len() / 2);
            let first = high.first().map_or(0, |(first, _)| *first);
            let (low, high) = (choose(low), choose(high));
            let compare = |if_true, if_false| Instruction {
                code: JUMP_IF_GREATER_OR_EQUAL,
                if_true,
                if_false,
                value: first,
            };
            let mut all = match u8::try_from(low.len()) {
                Ok(length) => vec![compare(length, 0)],
                // A conditional jump does not reach that far; an unconditional one does.
                Err(_) => vec![
                    compare(0, 1),
                    Instruction {
                        code: JUMP,
                        if_true: 0,
                        if_false: 0,
                        value: u32::try_from(low.len()).unwrap_or(u32::MAX),
                    },
                ],
            };
            all.extend(low);
            all.extend(high);
            all
        }
    }
}

pub(super) fn bytes(program: &[Instruction]) -> Vec<u8> {
    let one = |instruction: &Instruction| {
        let Instruction { code, if_true, if_false, value } = *instruction;
        let word = u64::from(code)
            | u64::from(if_true) << 16
            | u64::from(if_false) << 24
            | u64::from(value) << 32;
        word.to_le_bytes()
    };
    program.iter().flat_map(one).collect()
}

/// Runs programs as the kernel would.
#[cfg(test)]
pub(super) mod interpreter {
    use super::*;

    #[derive(Clone, Copy)]
    pub(in super::super) struct Call {
        pub(in super::super) architecture: u32,
        pub(in super::super) number: u32,
        pub(in super::super) arguments: [u64; 6],
    }

    pub(in super::super) fn run(program: &[Instruction], call: Call) -> Verdict {
        let mut data = vec![];
        data.extend(call.number.to_le_bytes());
        data.extend(call.architecture.to_le_bytes());
        data.extend([0; 8]);
        data.extend(call.arguments.iter().flat_map(|argument| argument.to_le_bytes()));
        let (mut at, mut accumulator) = (0, 0);
        loop {
            let Instruction { code, if_true, if_false, value } = program[at];
            let branch = |taken| usize::from(if taken { if_true } else { if_false });
            at += 1;
            match code {
                LOAD => {
                    let offset = value as usize;
                    accumulator = u32::from_le_bytes(data[offset..offset + 4].try_into().unwrap());
                }
                AND => accumulator &= value,
                JUMP => at += value as usize,
                JUMP_IF_EQUAL => at += branch(accumulator == value),
                JUMP_IF_GREATER_OR_EQUAL => at += branch(accumulator >= value),
                RETURN if value == ALLOW => return Verdict::Allow,
                RETURN => {
                    assert_eq!(value & 0xffff_0000, ERRNO);
                    return Verdict::Errno((value & 0xffff).try_into().unwrap());
                }
                code => panic!("no instruction {code:x}"),
            }
        }
    }
}
