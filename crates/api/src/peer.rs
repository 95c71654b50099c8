//! Where a request came from, as its connection knows it.

use std::net::{IpAddr, SocketAddr};

/// Put into each request's extensions by whoever accepted its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// The private unix socket, and the kernel says it is the server's own user.
    Operator { uid: u32 },
    /// The network, loopback included: proves nothing.
    Network {
        from: SocketAddr,
        /// The address of ours that was reached.
        reached: IpAddr,
        /// Whether nobody on the way can read along.
        secure: bool,
    },
}
