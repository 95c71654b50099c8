//! `atoll sh` in a real terminal.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::{
    Case,
    atoll::{Atoll, until},
    tmux::Tmux,
};

pub(crate) const CASES: &[Case] = &[
    ("an_editor_edits_and_saves", editor),
    ("what_draws_the_whole_screen_follows_its_size", top),
    ("after_two_hundred_megabytes_the_prompt_answers", flood),
    ("after_a_hundred_sizes_the_last_one_holds", storm),
    ("whoever_leaves_comes_back_to_what_was_shown", back),
    ("a_key_interrupts_what_runs_inside", interrupt),
    ("no_answer_of_the_terminal_reaches_the_shell_outside", answers),
    ("questions_are_not_asked_again_by_coming_back", replay),
    ("a_lost_server_gives_the_terminal_back", lost),
    ("a_signal_gives_the_terminal_back", signal),
    ("a_sandbox_for_one_visit_is_gone_afterwards", visit),
    ("a_command_of_a_session_may_have_a_terminal", exec),
];

/// A terminal in which a session's shell runs.
fn shell(atoll: &Atoll, session: &str) -> Tmux {
    let tmux = Tmux::new(atoll);
    tmux.line(&format!("$A sh {session} -- env PS1='guest> ' sh"));
    tmux.until_line("guest>");
    tmux
}

/// The mode is as the shell outside wants it.
fn given_back(tmux: &Tmux) {
    tmux.clear();
    tmux.line("stty -a | tr ' ' '\\n' | grep -x -e '-icanon' -e '-isig' -e '-echo' -e '-opost'; echo sane");
    tmux.until_line("sane");
    tmux.prompt("host>");
    let screen = tmux.screen();
    let raw: Vec<_> = screen.lines().filter(|line| line.starts_with('-')).collect();
    assert!(raw.is_empty(), "still set: {raw:?}");
}

fn editor() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    let tmux = Tmux::new(&atoll);

    tmux.line(&format!("$A sh {session} -- vim.tiny note.txt"));
    tmux.until("\"note.txt\"");
    tmux.write("ihello from vim");
    tmux.until("hello from vim");
    tmux.press(&["Escape"]);
    tmux.line(":wq");
    tmux.prompt("host>");

    assert_eq!(atoll.ok(&["cp", &format!("{session}:note.txt"), "-"]), "hello from vim\n");
    given_back(&tmux);
}

fn top() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    let tmux = Tmux::new(&atoll);

    tmux.line(&format!("$A sh {session} -- top -d 0.5"));
    tmux.until("Tasks:");
    tmux.until("COMMAND");
    // In so narrow a window the last column has no room.
    tmux.resize(15, 50);
    tmux.until_so("a narrow top", |screen| {
        screen.contains("Tasks:") && !screen.contains("COMMAND")
    });
    tmux.resize(30, 100);
    tmux.until("COMMAND");
    tmux.write("q");
    // What it drew stays around the prompt.
    tmux.until_line("host>");

    given_back(&tmux);
}

fn flood() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    let mut tmux = shell(&atoll, &session);
    tmux.patience = Duration::from_mins(8);

    tmux.line("yes 0123456789012345678901234567890123456789 | head -c 200000000 | cat; echo; echo flooded");
    tmux.until_line("flooded");
    tmux.prompt("guest>");
    tmux.line("echo $((40 + 2)) still here");
    tmux.until_line("42 still here");
    tmux.prompt("guest>");
    tmux.line("exit 3");
    tmux.prompt("host>");

    given_back(&tmux);
}

fn storm() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    let tmux = shell(&atoll, &session);

    for number in 0..100 {
        tmux.resize(10 + number % 17, 40 + number % 31);
    }
    tmux.resize(27, 93);

    // The last of them takes a moment to get there.
    tmux.line("until [ \"$(stty size)\" = '27 93' ]; do sleep 0.1; done; echo settled");
    tmux.until_line("settled");
}

fn back() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    let tmux = shell(&atoll, &session);
    tmux.line("echo mark $((40 + 2))");
    tmux.until_line("mark 42");

    tmux.press(&["C-p", "C-q"]);
    tmux.until("comes back");
    given_back(&tmux);
    tmux.clear();
    tmux.line(&format!("$A sh {session} --attach"));
    tmux.until_line("mark 42");
    tmux.prompt("guest>");
    tmux.line("exit 7");
    tmux.prompt("host>");
    tmux.line("echo code $?");

    tmux.until_line("code 7");
    tmux.prompt("host>");
    tmux.line(&format!("$A sh {session} --attach"));
    tmux.until("no terminal runs");
}

fn interrupt() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    let tmux = shell(&atoll, &session);

    tmux.line("sh -c 'echo begun; exec sleep 1000'");
    tmux.until_line("begun");
    tmux.press(&["C-c"]);
    tmux.prompt("guest>");
    tmux.line("echo code $?");

    tmux.until_line("code 130");
}

fn answers() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    let tmux = shell(&atoll, &session);

    // Questions whose answers come when the guest is gone, and modes that make a terminal talk.
    tmux.line("stty -echo");
    tmux.prompt("guest>");
    tmux.line("printf '\\033[c\\033[>c\\033[6n\\033[5n\\033[?1000h\\033[?1004h\\033[?25l'; exit 3");
    tmux.prompt("host>");
    tmux.line("echo code $?");
    tmux.until_line("code 3");

    // Had something been typed before, it would stand here.
    tmux.until_line("guest> host> echo code $?");
    let state = tmux.ask(&["display-message", "-p", "#{mouse_any_flag} #{cursor_flag}"]);
    assert_eq!(state.trim(), "0 1", "mouse and cursor");
    given_back(&tmux);
}

fn replay() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    let tmux = shell(&atoll, &session);
    // Whoever asks reads the answer, the first time.
    let ask = "printf '\\033[6n'; perl -e '1 while sysread(STDIN, $c, 1) && $c ne \"R\"'";
    tmux.line(&format!("stty raw -echo; {ask}; stty sane; echo asked $((40 + 2))"));
    tmux.until_line("asked 42");
    tmux.prompt("guest>");
    tmux.line("read line; echo \"got <$line>\"");

    tmux.press(&["C-p", "C-q"]);
    tmux.until("comes back");
    tmux.clear();
    tmux.line(&format!("$A sh {session} --attach"));
    tmux.until("read line;");
    tmux.line("typed");

    tmux.until_line("got <typed>");
}

fn lost() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    let tmux = shell(&atoll, &session);
    tmux.line("echo mark $((40 + 2))");
    tmux.until_line("mark 42");

    atoll.ok(&["daemon", "stop", "--keep"]);
    tmux.until("lost the terminal");
    given_back(&tmux);

    // The next server adopts the session, and the terminal with it.
    tmux.clear();
    tmux.line(&format!("$A sh {session} --attach"));
    tmux.until_line("mark 42");
    tmux.prompt("guest>");
    tmux.line("echo again $((40 + 3))");
    tmux.until_line("again 43");
}

fn signal() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    let tmux = Tmux::new(&atoll);
    tmux.line(&format!(
        "sh -c 'echo $$ > $HOME/pid; exec $A sh {session} -- env PS1=\"guest> \" sh'"
    ));
    tmux.until_line("guest>");
    let pid = std::fs::read_to_string(atoll.path("pid")).unwrap().trim().parse().unwrap();

    kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();

    tmux.prompt("host>");
    given_back(&tmux);
    // It was not the guest's end.
    tmux.line(&format!("$A sh {session} --attach"));
    tmux.until_line("guest>");
}

fn visit() {
    let atoll = Atoll::new();
    let tmux = Tmux::new(&atoll);

    tmux.line("$A sh -- sh -c 'echo inside; exit 4'; echo code $?");
    tmux.until_line("inside");
    tmux.until_line("code 4");

    until("no session is left", || atoll.sessions().is_empty());
}

fn exec() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    let tmux = Tmux::new(&atoll);

    tmux.line(&format!("$A exec -it {session} -- sh -c 'stty size; exit 6'; echo code $?"));
    tmux.until_line("30 100");
    tmux.until_line("code 6");
}
