//! Who the agent is and what it may do.

use std::io;

use atoll_launcher::{Ids, Plan};
use rustix::{
    process::{Gid, Uid},
    thread::{
        CapabilitySet, CapabilitySets, configure_capability_in_ambient_set,
        remove_capability_from_bounding_set, set_capabilities, set_no_new_privs, set_thread_groups,
        set_thread_res_gid, set_thread_res_uid,
    },
};

/// What the agent needs: to start guests as their user, without any rights, and to end them.
const KEPT: [CapabilitySet; 4] =
    [CapabilitySet::SETUID, CapabilitySet::SETGID, CapabilitySet::SETPCAP, CapabilitySet::KILL];

/// The last capability this program was written with; a kernel that has fewer says so.
const LAST: u64 = 63;

/// Becomes the root of its user namespace, whose ids are mapped by now.
pub(crate) fn become_root() -> rustix::io::Result<()> {
    set_thread_groups(&[])?;
    set_thread_res_gid(Gid::ROOT, Gid::ROOT, Gid::ROOT)?;
    set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT)
}

/// What it needs where it has its guests' user: to number its own processes, and to leave its
/// guests without any rights. That it has one they have not also keeps them from tracing it.
const KEPT_ALIKE: [CapabilitySet; 2] = [CapabilitySet::CHECKPOINT_RESTORE, CapabilitySet::SETPCAP];

/// Lays down, for the program started next and for ever, all rights but the agent's.
pub(crate) fn keep_only_the_agents_rights(plan: &Plan) -> io::Result<()> {
    let alike = matches!(plan.ids, Ids::One(_));
    let kept = if alike { &KEPT_ALIKE[..] } else { &KEPT[..] };
    for number in 0..=LAST {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        if kept.contains(&capability) {
            continue;
        }
        match remove_capability_from_bounding_set(capability) {
            Err(rustix::io::Errno::INVAL) => break,
            removed => removed?,
        }
    }
    if alike {
        keep_without_root(kept)?;
    }
    set_no_new_privs(true)?;
    Ok(())
}

/// Who is not root keeps through the start of a program only what is said here.
fn keep_without_root(kept: &[CapabilitySet]) -> rustix::io::Result<()> {
    let all = kept.iter().fold(CapabilitySet::empty(), |all, one| all | *one);
    set_capabilities(None, CapabilitySets { effective: all, permitted: all, inheritable: all })?;
    kept.iter().try_for_each(|one| configure_capability_in_ambient_set(*one, true))
}
