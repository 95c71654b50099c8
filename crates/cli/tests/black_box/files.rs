//! `atoll cp`.

use std::{fs, os::unix::fs::PermissionsExt as _};

use crate::{
    Case,
    atoll::{Atoll, names},
};

pub(crate) const CASES: &[Case] = &[
    ("a_file_goes_in_and_comes_out_unchanged", there_and_back),
    ("a_file_goes_into_a_directory_under_its_own_name", into_directory),
    ("streams_are_copied_both_ways", streams),
    ("a_program_can_be_run_where_it_was_copied_to", programs),
    ("a_copy_that_fails_leaves_nothing", fails),
];

fn there_and_back() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    let content: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    fs::write(atoll.path("in.bin"), &content).unwrap();

    atoll.ok(&["cp", "in.bin", &format!("{session}:data.bin")]);
    atoll.ok(&["cp", &format!("{session}:data.bin"), "out.bin"]);

    assert!(fs::read(atoll.path("out.bin")).unwrap() == content);
}

fn into_directory() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    fs::write(atoll.path("note.txt"), "a note").unwrap();
    fs::create_dir(atoll.path("target")).unwrap();
    atoll.ok(&["exec", &session, "--", "mkdir", "place"]);

    atoll.ok(&["cp", "note.txt", &format!("{session}:place")]);
    atoll.ok(&["cp", &format!("{session}:place/note.txt"), "target"]);

    assert_eq!(fs::read_to_string(atoll.path("target/note.txt")).unwrap(), "a note");
}

fn streams() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);

    let ended = atoll.feed(&["cp", "-", &format!("{session}:streamed")], b"some bytes\0");
    let back = atoll.run(&["cp", &format!("{session}:streamed"), "-"]);

    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(back.stdout, b"some bytes\0");
}

fn programs() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    fs::write(atoll.path("program"), "#!/bin/sh\necho ran").unwrap();
    fs::set_permissions(atoll.path("program"), fs::Permissions::from_mode(0o755)).unwrap();

    atoll.ok(&["cp", "program", &format!("{session}:")]);
    let ran = atoll.ok(&["exec", &session, "--", "./program"]);
    atoll.ok(&["cp", &format!("{session}:program"), "back"]);
    let shown = atoll.ok(&["cp", &format!("{session}:program"), "/dev/stdout"]);

    assert_eq!(ran, "ran\n");
    assert_eq!(fs::metadata(atoll.path("back")).unwrap().permissions().mode() & 0o100, 0o100);
    assert_eq!(shown, "#!/bin/sh\necho ran");
}

fn fails() {
    let atoll = Atoll::new();
    let session = atoll.session(&[]);
    let target = atoll.path("target");
    fs::create_dir(&target).unwrap();

    let missing = atoll.run(&["cp", &format!("{session}:nothing"), "target"]);
    let directory = atoll.run(&["cp", &format!("{session}:/tmp"), "target"]);
    let into = atoll.run(&["cp", "target", &format!("{session}:")]);

    assert_eq!((missing.code, directory.code, into.code), (125, 125, 125));
    assert!(directory.stderr.contains("hint: "), "{directory:?}");
    assert_eq!(names(&target), [""; 0]);
}
