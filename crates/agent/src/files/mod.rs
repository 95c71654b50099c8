//! The files of the sandbox, as its user sees them.

use atoll_agent_protocol::{
    message::{Failure, FailureKind, request::Call},
    mux::Stream,
};

use crate::{failure::failure, launch::Guests};

#[derive(Debug)]
pub(crate) struct Files;

impl Files {
    pub(crate) fn new(_home: String, _guests: Guests) -> Self {
        Self
    }
}

pub(crate) async fn answer(_files: &Files, _call: Call, _stream: &Stream) -> Result<(), Failure> {
    std::future::ready(()).await;
    Err(failure(FailureKind::Unsupported, "files are not there yet"))
}
