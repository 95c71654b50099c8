//! Ports of a session's sandbox.

use serde::{Deserialize, Serialize};

/// Answer of `GET /api/sessions/{id}/ports`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PortList {
    /// TCP ports of the sandbox's loopback on which something listens, lowest first.
    pub ports: Vec<u16>,
}
