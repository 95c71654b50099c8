//! A suite that passes whatever it is given is worth nothing: each flaw planted here must be
//! caught by the case that claims the opposite, and that case must pass without it.

mod engine;
mod files;
mod flaw;
mod ports;
mod sandbox;

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use atoll_engine::{
    Engine,
    conformance::{Failure, Stage, Subject, cases},
};
use atoll_local::{Config, LocalEngine};
use tokio::runtime::Runtime;

use crate::{engine::Flawed, flaw::Flaw};

/// A case that waits for ever is as good as failed, sooner than in earnest.
const DEADLINE: Duration = Duration::from_secs(6);

/// Runs a case against an engine with a flaw.
fn run(flaw: Flaw, name: &str, deadline: Duration) -> Result<(), Failure> {
    let case = cases().into_iter().find(|case| case.name() == name).expect("there is such a case");
    let runtime = Runtime::new().expect("a runtime starts");
    let sound = Arc::new(OnceLock::<Arc<dyn Engine>>::new());
    let subject = Subject::new(
        {
            let sound = Arc::clone(&sound);
            move |directory| {
                let engine: Arc<dyn Engine> = Arc::new(LocalEngine::new(Config::new(directory)));
                // The first of several will do: they all find the same sandboxes.
                let _ = sound.set(Arc::clone(&engine));
                Arc::new(Flawed::new(engine, flaw, directory))
            }
        },
        "",
    );
    let stage = Stage::new(subject.deadline(deadline), runtime.handle().clone());
    let stage = stage.expect("a directory is made");

    let result = case.run(&stage);

    // Some flaws leave sandboxes: what has none removes them.
    let engine = sound.get().expect("an engine was made");
    runtime.block_on(async {
        for id in engine.list().await.expect("they are listed") {
            engine.destroy(&id).await.expect("it is destroyed");
        }
    });
    result
}

fn catches(name: &str, flaw: Flaw) {
    let sound = run(Flaw::None, name, Duration::from_secs(45));
    assert!(!matches!(sound, Err(Failure::Broken(_))), "{name} without a flaw: {sound:?}");

    let flawed = run(flaw, name, DEADLINE);

    assert!(matches!(flawed, Err(Failure::Broken(_))), "{name} let {flaw:?} through");
}

macro_rules! flaws {
    ($($test:ident: $flaw:ident is caught by $case:literal;)*) => {
        $(#[test] fn $test() { catches($case, Flaw::$flaw); })*
    };
}

flaws! {
    a_byte_is_dropped: DropsAByte is caught by "streams::every_byte_value_survives";
    output_comes_twice: DuplicatesOutput is caught by "streams::bytes_written_one_by_one_are_one_stream";
    output_is_held_back: HoldsOutputBack is caught by "streams::output_comes_while_the_process_runs";
    offsets_are_ignored: IgnoresOffsets is caught by "streams::reading_begins_where_it_is_asked_to";
    the_limit_of_output_is_one_too_low: LimitsOutputTooEarly is caught by "streams::output_of_exactly_the_limit_is_whole";
    the_limit_of_output_is_ignored: IgnoresOutputLimit is caught by "streams::more_output_than_allowed_ends_the_process";
    processes_are_forgotten: ForgetsProcesses is caught by "streams::another_daemon_reads_from_the_beginning";
    exit_codes_are_cut: CutsExitCodes is caught by "processes::every_exit_code_is_told";
    the_end_waits_for_the_output: EndsOnEof is caught by "processes::a_background_process_does_not_delay_the_end";
    the_working_directory_is_ignored: IgnoresWorkingDirectory is caught by "processes::the_working_directory_is_home_unless_said";
    a_path_of_the_host_is_told: TellsHostPaths is caught by "processes::a_failure_says_nothing_about_the_host";
    a_missing_program_is_started: StartsAnything is caught by "processes::a_missing_program_is_not_found";
    a_timeout_is_ignored: IgnoresTimeout is caught by "signals::a_timeout_is_told";
    a_timeout_is_told_as_a_signal: BlamesTheProgram is caught by "signals::a_timeout_is_told";
    only_the_process_is_killed: KillsOnlyTheProcess is caught by "signals::killing_ends_descendants_too";
    signals_go_to_descendants: SignalsDescendants is caught by "signals::a_signal_does_not_reach_descendants";
    standard_input_is_never_closed: KeepsInputOpen is caught by "stdin::input_is_read_to_its_end";
    standard_input_is_taken_for_written: DoesNotWaitForReaders is caught by "stdin::writing_waits_for_the_reader";
    a_terminal_is_none: IgnoresTerminals is caught by "terminals::its_streams_are_a_terminal_of_that_size";
    a_size_is_ignored: IgnoresResize is caught by "terminals::a_new_size_is_told_and_found";
    a_limit_is_ignored: IgnoresLimits is caught by "limits::too_many_processes_are_refused";
    a_variable_leaks: LeaksAVariable is caught by "environment::no_variable_of_the_daemon_gets_in";
    a_descriptor_leaks: LeaksADescriptor is caught by "environment::a_process_has_three_descriptors";
    a_signal_is_ignored_by_programs: IgnoresASignal is caught by "environment::signals_are_as_a_program_expects_them";
    files_are_written_in_place: WritesInPlace is caught by "uploads::new_content_replaces_old_in_one_step";
    half_a_file_is_kept: KeepsHalfAFile is caught by "uploads::an_upload_that_fails_leaves_the_old_file";
    modes_are_lost: LosesModes is caught by "uploads::an_existing_file_keeps_its_mode";
    an_archive_has_no_end: EndsArchivesEarly is caught by "archives::a_tree_goes_out_and_comes_back";
    half_an_archive_is_taken_for_all: UnpacksHalfAnArchive is caught by "archives::an_archive_that_breaks_off_is_not_taken_for_whole";
    a_link_is_told_as_its_target: FollowsLinks is caught by "files::a_path_is_told_as_what_it_is";
    a_listing_is_not_in_order: ListsInDisorder is caught by "files::a_directory_is_listed_by_name";
    names_are_found_in_disorder: FindsInDisorder is caught by "search::names_are_found_in_the_order_of_a_walk";
    that_there_is_more_is_not_told: HidesThatThereIsMore is caught by "search::finding_ends_where_it_is_told_to";
    case_is_ignored: IgnoresCase is caught by "search::case_and_text_are_taken_as_asked";
    edits_are_done_one_by_one: EditsOneByOne is caught by "search::all_edits_are_done_or_none";
    nothing_below_is_watched: WatchesNothingBelow is caught by "watching::nothing_is_missed_once_it_watches";
    moves_are_not_told: HidesMoves is caught by "watching::changes_are_told_as_they_happen";
    lost_changes_are_not_told: HidesOverflows is caught by "watching::what_a_slow_reader_misses_is_told_as_lost";
    a_read_follows_a_growing_file: ReadsWhatComesLater is caught by "files::reading_ends_where_the_file_did";
    an_id_is_given_twice: CreatesTwice is caught by "lifecycle::an_id_in_use_exists_already";
    the_untrusted_are_trusted: TrustsEverybody is caught by "lifecycle::an_untrusted_spec_is_denied_without_isolation";
    a_handle_takes_its_sandbox_along: DestroysOnDrop is caught by "lifecycle::a_dropped_handle_changes_nothing";
    the_end_goes_unnoticed: NeverEnds is caught by "lifecycle::its_end_is_noticed";
    a_lost_process_is_told_as_cancelled: CallsLostCancelled is caught by "lifecycle::a_running_process_is_lost_with_its_sandbox";
    destroying_leaves_it_there: LeavesEverything is caught by "lifecycle::what_is_destroyed_is_not_found";
    the_hosts_ports_are_reached: ReachesTheHost is caught by "ports::a_port_of_the_host_is_not_reached";
    tunnels_are_not_counted: OpensAnyNumberOfTunnels is caught by "ports::a_tunnel_too_many_is_refused";
    one_end_is_taken_for_both: EndsBothDirections is caught by "ports::each_side_ends_its_own_direction";
    connections_outlive_their_tunnels: KeepsConnections is caught by "ports::a_dropped_tunnel_ends_the_connection";
    a_lost_tunnel_says_nothing: TellsNoReasonOfATunnel is caught by "ports::a_tunnel_is_lost_with_its_sandbox";
    remains_are_not_listed: ListsNothing is caught by "listing::what_lives_is_listed_once";
}
