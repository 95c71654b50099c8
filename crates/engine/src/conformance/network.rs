//! What a sandbox can reach.

use tokio::net::TcpListener;

use super::{
    Failure, Stage,
    case::{CaseResult, cases, same},
    scratch::Scratch,
};
use crate::{Network, Spec};

cases![loopback_is_ones_own, the_host_network_is_there_if_asked_for, loopback_has_no_way_out,];

/// Says `own` if a socket of its own on loopback can be reached, `host` if the host's can.
fn program(port: u16) -> String {
    format!(
        "perl -MIO::Socket::INET -e '
            my $own = IO::Socket::INET->new(LocalAddr => \"127.0.0.1\", Listen => 1);
            print \"own\\n\" if $own && IO::Socket::INET->new(
                PeerAddr => \"127.0.0.1\", PeerPort => $own->sockport, Timeout => 20);
            print \"host\\n\" if IO::Socket::INET->new(
                PeerAddr => \"127.0.0.1\", PeerPort => {port}, Timeout => 20);
        '"
    )
}

async fn listener() -> Result<(TcpListener, u16), Failure> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}

async fn loopback_is_ones_own(stage: Stage) -> CaseResult {
    let spec = Spec { network: Network::Loopback, ..stage.spec() };
    let scratch = Scratch::asking(&stage, "network", spec).await?;
    let (_listener, port) = listener().await?;

    same("reached", scratch.text(&program(port)).await?, "own\n".into())
}

async fn the_host_network_is_there_if_asked_for(stage: Stage) -> CaseResult {
    let spec = Spec { network: Network::Host, ..stage.spec() };
    let scratch = Scratch::asking(&stage, "network", spec).await?;
    let (_listener, port) = listener().await?;

    same("reached", scratch.text(&program(port)).await?, "own\nhost\n".into())
}

async fn loopback_has_no_way_out(stage: Stage) -> CaseResult {
    let spec = Spec { network: Network::Loopback, ..stage.spec() };
    let scratch = Scratch::asking(&stage, "network", spec).await?;

    same("routes", scratch.text("tail -n +2 /proc/net/route").await?, String::new())
}
