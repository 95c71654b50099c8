//! Who the agent is and what it may do.

use std::io;

use rustix::{
    process::{Gid, Uid},
    thread::{
        CapabilitySet, remove_capability_from_bounding_set, set_no_new_privs, set_thread_groups,
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

/// Lays down, for the program started next and for ever, all rights but the agent's.
pub(crate) fn keep_only_the_agents_rights() -> io::Result<()> {
    for number in 0..=LAST {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        if KEPT.contains(&capability) {
            continue;
        }
        match remove_capability_from_bounding_set(capability) {
            Err(rustix::io::Errno::INVAL) => break,
            removed => removed?,
        }
    }
    set_no_new_privs(true)?;
    Ok(())
}
