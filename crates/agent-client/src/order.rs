//! A command, checked and put in the agent's words.

use std::time::Duration;

use atoll_agent_protocol::message::{self, Start, StartTerminal, request::Call};
use atoll_engine::{Command, Error, Limits, MAX_OUTPUT, MAX_TERMINAL_SIDE, Result, TerminalSize};
use prost::Message as _;

use crate::{Counters, failure, note::Note};

/// Bytes of words and variables together; about what a kernel takes.
const LONGEST: usize = 2 << 20;

/// What to send to start a command, and the note that goes with it.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) start: Start,
    pub(crate) terminal: Option<message::TerminalSize>,
    pub(crate) note: Note,
}

impl Order {
    /// Checks a command before anything is sent; what it leaves open is as `limits` has it.
    pub(crate) fn new(command: Command, limits: &Limits, counters: &Counters) -> Result<Self> {
        check(&command)?;
        let cpu_limit = command.cpu_time.or(limits.cpu_time.map(|span| span.0));
        if cpu_limit.is_some() && counters.cpu_time.is_none() {
            return Err(Error::unsupported(
                "this host cannot limit the processor time of a command",
            ));
        }
        let usual = limits.output.map_or(MAX_OUTPUT, |size| size.0.min(MAX_OUTPUT));
        let note = Note::new(counters, command.timeout, cpu_limit)
            .with_terminal(command.terminal.is_some());
        let terminal = command.terminal.map(size).transpose()?;
        let start = Start {
            argv: command.argv,
            env: command.env.iter().map(|(name, value)| format!("{name}={value}")).collect(),
            cwd: command.cwd,
            stdin: command.stdin,
            timeout_ms: command.timeout.map(milliseconds),
            output: command.output.unwrap_or(usual),
            note: note.encode_to_vec(),
        };
        Ok(Self { start, terminal, note })
    }

    /// What to ask the agent, and the note.
    pub(crate) fn into_parts(self) -> (Call, Note) {
        let call = match self.terminal {
            None => Call::Start(self.start),
            size => Call::StartTerminal(StartTerminal { start: Some(self.start), size }),
        };
        (call, self.note)
    }
}

/// A terminal's size, checked.
pub(crate) fn size(TerminalSize { rows, columns }: TerminalSize) -> Result<message::TerminalSize> {
    let range = 1..=MAX_TERMINAL_SIDE;
    if !range.contains(&rows) || !range.contains(&columns) {
        return Err(Error::invalid(format!(
            "a terminal of {rows} rows and {columns} columns: both are 1 to {MAX_TERMINAL_SIDE}"
        )));
    }
    Ok(message::TerminalSize { rows: rows.into(), columns: columns.into() })
}

/// A terminal's size as an agent has it, which is none but one it was given.
pub(crate) fn size_told(told: message::TerminalSize) -> Result<TerminalSize> {
    let narrow = |count| u16::try_from(count).map_err(|_| failure::nonsense());
    let asked = TerminalSize { rows: narrow(told.rows)?, columns: narrow(told.columns)? };
    size(asked).map_err(|_| failure::nonsense())?;
    Ok(asked)
}

fn check(command: &Command) -> Result<()> {
    let Some(program) = command.argv.first() else {
        return Err(Error::invalid("a command has at least a program"));
    };
    if program.is_empty() {
        return Err(Error::invalid("the program's name is empty"));
    }
    if command.argv.iter().any(|word| word.contains('\0')) {
        return Err(Error::invalid("a command's words hold no NUL"));
    }
    if command.env.keys().any(|name| name.is_empty() || name.contains(['=', '\0'])) {
        return Err(Error::invalid("a variable's name is not empty and holds no `=` and no NUL"));
    }
    if command.env.values().any(|value| value.contains('\0')) {
        return Err(Error::invalid("a variable's value holds no NUL"));
    }
    if command.cwd.as_ref().is_some_and(|cwd| cwd.is_empty() || cwd.contains('\0')) {
        return Err(Error::invalid("a working directory is not empty and holds no NUL"));
    }
    let words: usize = command.argv.iter().map(|word| word.len() + 1).sum();
    let variables: usize =
        command.env.iter().map(|(name, value)| name.len() + value.len() + 2).sum();
    let directory = command.cwd.as_ref().map_or(0, String::len);
    if words + variables + directory > LONGEST {
        return Err(Error::invalid("the command and its variables are longer than 2 MiB"));
    }
    if command.output.is_some_and(|output| output > MAX_OUTPUT) {
        return Err(Error::invalid(format!("the output limit is above {MAX_OUTPUT} bytes")));
    }
    if command.terminal.is_some() && command.output.is_some() {
        return Err(Error::invalid("the output of a terminal has no limit"));
    }
    Ok(())
}

/// Rounded up: the agent must not be earlier than the host.
fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros().div_ceil(1000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use atoll_engine::ErrorKind;
    use atoll_types::quantity::{Size, Span};

    use super::*;

    fn order(command: Command) -> Result<Order> {
        Order::new(command, &Limits::default(), &Counters::default())
    }

    #[test]
    fn what_no_kernel_would_take_is_refused() {
        let with = |change: &dyn Fn(&mut Command)| {
            let mut command = Command::new(["true"]);
            change(&mut command);
            command
        };
        let long = "x".repeat(LONGEST);
        let cases = [
            Command::new(Vec::<String>::new()),
            Command::new([""]),
            Command::new(["a\0b"]),
            Command::new(["a", "b\0"]),
            Command::new(["a", &long]),
            with(&|command| drop(command.env.insert("A=B".into(), "c".into()))),
            with(&|command| drop(command.env.insert(String::new(), "c".into()))),
            with(&|command| drop(command.env.insert("A\0".into(), "c".into()))),
            with(&|command| drop(command.env.insert("A".into(), "c\0".into()))),
            with(&|command| drop(command.env.insert("A".into(), long.clone()))),
            with(&|command| command.cwd = Some("a\0".into())),
            with(&|command| command.cwd = Some(String::new())),
            with(&|command| command.output = Some(MAX_OUTPUT + 1)),
            Command { output: Some(1), ..Command::new(["sh"]).with_terminal(24, 80) },
            Command::new(["sh"]).with_terminal(0, 80),
            Command::new(["sh"]).with_terminal(24, 0),
            Command::new(["sh"]).with_terminal(24, MAX_TERMINAL_SIDE + 1),
            Command::new(["sh"]).with_terminal(u16::MAX, u16::MAX),
        ];
        for command in cases {
            let error = order(command).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        }
    }

    #[test]
    fn a_command_is_sent_as_it_is() {
        let mut command = Command::new(["echo", "ä=b"]).timeout(Duration::from_micros(1001));
        command.env.insert("A".into(), "b=c".into());

        let start = order(command).unwrap().start;

        assert_eq!(start.argv, ["echo", "ä=b"]);
        assert_eq!(start.env, ["A=b=c"]);
        assert_eq!(start.timeout_ms, Some(2));
        assert_eq!(start.output, MAX_OUTPUT);
    }

    #[test]
    fn the_sandbox_limits_are_a_commands_own_unless_it_has_some() {
        let limits = Limits {
            output: Some(Size(500)),
            cpu_time: Some(Span(Duration::from_secs(7))),
            ..Limits::default()
        };
        let counters = Counters { cpu_time: Some(Duration::ZERO), ..Counters::default() };
        let mut own = Command::new(["true"]);
        own.output = Some(9);
        own.cpu_time = Some(Duration::from_secs(1));

        let usual = Order::new(Command::new(["true"]), &limits, &counters).unwrap();
        let own = Order::new(own, &limits, &counters).unwrap();

        assert_eq!((usual.start.output, own.start.output), (500, 9));
        assert_eq!(usual.note.cpu_limit(), Some(Duration::from_secs(7)));
        assert_eq!(own.note.cpu_limit(), Some(Duration::from_secs(1)));
    }

    #[test]
    fn processor_time_nobody_counts_cannot_be_limited() {
        let mut command = Command::new(["true"]);
        command.cpu_time = Some(Duration::from_secs(1));

        assert_eq!(order(command).unwrap_err().kind(), ErrorKind::Unsupported);
    }
}
