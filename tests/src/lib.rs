//! Tests of the whole: what depends on what, and that the conformance suite catches what is wrong.
