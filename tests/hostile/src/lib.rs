//! The hostile tier: guests that attack, and the checks that see them contained.
//!
//! A [`check::Check`] is a claim with evidence. It runs on a [`stage::Stage`], which makes its
//! sandboxes, watches the standing invariants around it, and takes everything down again. Most
//! checks run twice: as they are, and against something deliberately weaker, where they must fail.

pub mod bare;
pub mod canary;
pub mod census;
pub mod check;
pub mod checks;
pub mod counted;
pub mod ground;
pub mod harness;
pub mod naive;
pub mod run;
pub mod served;
pub mod snapshot;
pub mod stage;
pub mod subject;
pub mod witness;
pub mod world;
