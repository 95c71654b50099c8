//! Ports of a sandbox.

use std::{sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    time,
};

use super::{
    Failure, Stage,
    case::{CaseResult, broken, cases, check, fails, same},
    scratch::{Scratch, text},
};
use crate::{Command, Error, ErrorKind, MAX_TUNNELS, Ports, ProcessId, Sandbox, Tunnel};

cases![
    a_port_is_reached,
    each_side_ends_its_own_direction,
    a_port_nobody_listens_on_is_not_found,
    port_zero_is_invalid,
    a_port_of_the_host_is_not_reached,
    a_port_of_another_sandbox_is_not_reached,
    much_goes_both_ways,
    many_are_connected_at_once,
    a_tunnel_too_many_is_refused,
    a_stalled_tunnel_holds_up_nothing,
    a_dropped_tunnel_ends_the_connection,
    a_program_that_ends_ends_its_tunnels,
    a_tunnel_is_lost_with_its_sandbox,
    another_daemon_reaches_ports,
    what_listens_is_told,
];

/// How long a condition may take to come true.
const PATIENCE: Duration = Duration::from_secs(30);

/// Sends back whatever it is sent.
const ECHO: &str = "
    my $b;
    while (sysread $c, $b, 65536) {
        my $o = 0;
        while ($o < length $b) { $o += syswrite($c, $b, length($b) - $o, $o) // exit }
    }";

/// The sandbox's ports, unless the engine says that it has none of its own.
fn ports(sandbox: &dyn Sandbox) -> Result<&dyn Ports, Failure> {
    sandbox.ports().ok_or_else(|| Failure::Refused("ports".into()))
}

/// Starts a server that does `this` with each connection `$c`, in a process of its own, and gives
/// its port.
async fn serve(scratch: &Scratch, this: &str) -> Result<(ProcessId, u16), Failure> {
    let program = format!(
        "use IO::Socket::INET;
        $SIG{{CHLD}} = 'IGNORE';
        my $l = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 128) or die;
        open my $f, '>', 'port.new'; print $f $l->sockport; close $f; rename 'port.new', 'port';
        while (my $c = $l->accept) {{ next if fork; close $l; $c->autoflush; {this}; exit }}"
    );
    scratch.text("rm -f port").await?;
    let process = scratch.start(Command::new(["perl", "-e", &program])).await?;
    scratch.until("[ -s port ]").await?;
    match scratch.text("cat port").await?.parse() {
        Ok(port) => Ok((process, port)),
        Err(_) => broken("the server has no port"),
    }
}

/// Sends some bytes to an echo and hears them.
async fn hears_itself(tunnel: &mut Tunnel, word: &str) -> CaseResult {
    tunnel.write_all(word.as_bytes()).await?;
    let mut back = vec![0; word.len()];
    tunnel.read_exact(&mut back).await?;
    same("came back", text(&back), word.to_owned())
}

/// That a tunnel failed, and in this way.
fn broke(kind: ErrorKind, seen: std::io::Result<usize>) -> CaseResult {
    let error = match seen {
        Ok(count) => return broken(format!("{count} bytes instead of {kind:?}")),
        Err(error) => error,
    };
    let held = error.get_ref().and_then(|held| held.downcast_ref::<Error>());
    same("the tunnel's failure", held.map(Error::kind), Some(kind))
}

async fn a_port_is_reached(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let ports = ports(&*scratch)?;
    let (_, port) = serve(&scratch, ECHO).await?;
    let mut tunnel = ports.connect(port).await?;

    hears_itself(&mut tunnel, "hello").await?;
    hears_itself(&mut tunnel, "\0\u{ff}\r\n").await?;

    tunnel.shutdown().await?;
    let mut rest = Vec::new();
    tunnel.read_to_end(&mut rest).await?;
    same("the rest", rest, Vec::new())
}

async fn each_side_ends_its_own_direction(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let ports = ports(&*scratch)?;
    let count = "my ($b, $n) = ('', 0); while (my $r = sysread $c, $b, 65536) { $n += $r }";

    let (_, port) = serve(&scratch, &format!("{count} print $c $n")).await?;
    let mut tunnel = ports.connect(port).await?;
    tunnel.write_all(&vec![7; 300_000]).await?;
    tunnel.shutdown().await?;
    let mut answer = String::new();
    tunnel.read_to_string(&mut answer).await?;
    same("answered after our end", answer, "300000".into())?;

    let after = format!(
        "print $c 'hello'; shutdown $c, 1; {count}
        open my $f, '>', 'seen.new'; print $f $n; close $f; rename 'seen.new', 'seen'"
    );
    let (_, port) = serve(&scratch, &after).await?;
    let mut tunnel = ports.connect(port).await?;
    let mut greeting = String::new();
    tunnel.read_to_string(&mut greeting).await?;
    same("sent before its end", greeting, "hello".into())?;
    tunnel.write_all(&vec![7; 300_000]).await?;
    tunnel.shutdown().await?;
    scratch.until("[ -e seen ]").await?;
    same("read after its end", scratch.text("cat seen").await?, "300000".into())
}

async fn a_port_nobody_listens_on_is_not_found(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let ports = ports(&*scratch)?;
    for port in [1, 80, 45_678, u16::MAX] {
        let message = fails("connect", ErrorKind::NotFound, ports.connect(port).await.map(drop))?;
        check(message.contains(&port.to_string()), || format!("port {port}: {message}"))?;
    }
    Ok(())
}

async fn port_zero_is_invalid(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let ports = ports(&*scratch)?;

    fails("connect", ErrorKind::Invalid, ports.connect(0).await.map(drop))?;
    Ok(())
}

async fn a_port_of_the_host_is_not_reached(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let ports = ports(&*scratch)?;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let port = listener.local_addr()?.port();

    fails("connect", ErrorKind::NotFound, ports.connect(port).await.map(drop))?;
    Ok(())
}

async fn a_port_of_another_sandbox_is_not_reached(stage: Stage) -> CaseResult {
    let (scratch, other) = (Scratch::new(&stage).await?, Scratch::new(&stage).await?);
    let ports = ports(&*scratch)?;
    let (_, port) = serve(&other, ECHO).await?;

    fails("connect", ErrorKind::NotFound, ports.connect(port).await.map(drop))?;
    Ok(())
}

async fn much_goes_both_ways(stage: Stage) -> CaseResult {
    const BYTES: usize = 32 << 20;
    let scratch = Scratch::new(&stage).await?;
    let ports = ports(&*scratch)?;
    let (_, port) = serve(&scratch, ECHO).await?;
    // No two windows of it are alike.
    let sent: Vec<u8> = (0..BYTES as u64 / 8).flat_map(|n| (n ^ (n << 29)).to_le_bytes()).collect();
    let (mut reader, mut writer) = tokio::io::split(ports.connect(port).await?);

    let writing = async {
        writer.write_all(&sent).await?;
        writer.shutdown().await
    };
    let mut back = Vec::with_capacity(BYTES);
    let (written, read) = tokio::join!(writing, reader.read_to_end(&mut back));
    written?;
    read?;

    check(back == sent, || format!("{} other bytes came back", back.len()))
}

async fn many_are_connected_at_once(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let ports = ports(&*scratch)?;
    let (_, port) = serve(&scratch, ECHO).await?;
    let mut tunnels = Vec::new();
    for _ in 0..32 {
        tunnels.push(ports.connect(port).await?);
    }

    for (number, tunnel) in tunnels.iter_mut().enumerate().rev() {
        hears_itself(tunnel, &format!("tunnel {number}")).await?;
    }
    Ok(())
}

async fn a_tunnel_too_many_is_refused(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let ports = ports(&*scratch)?;
    let (_, port) = serve(&scratch, "my $b; sysread $c, $b, 1").await?;
    let mut tunnels = Vec::new();
    for _ in 0..MAX_TUNNELS {
        tunnels.push(ports.connect(port).await?);
    }

    fails("connect", ErrorKind::Exhausted, ports.connect(port).await.map(drop))?;
    // It costs nothing else, and room comes back.
    same("a command", scratch.text("echo there").await?, "there\n".into())?;
    drop(tunnels);
    let deadline = time::Instant::now() + PATIENCE;
    loop {
        match ports.connect(port).await {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() != ErrorKind::Exhausted => return Err(error.into()),
            Err(_) => time::sleep(Duration::from_millis(20)).await,
        }
        check(time::Instant::now() < deadline, || "room never came back".into())?;
    }
}

async fn a_stalled_tunnel_holds_up_nothing(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let ports = ports(&*scratch)?;
    // Sixteen whose program writes without end to nobody, and one whose program never reads.
    let (_, flood) = serve(&scratch, "my $b = 'x' x 65536; 1 while syswrite $c, $b").await?;
    let mut stalled = Vec::new();
    for _ in 0..16 {
        let mut tunnel = ports.connect(flood).await?;
        tunnel.read_u8().await?;
        stalled.push(tunnel);
    }
    let (_, deaf) = serve(&scratch, "sleep 300").await?;
    let mut deaf = ports.connect(deaf).await?;
    let writing = tokio::spawn(async move { deaf.write_all(&vec![0; 16 << 20]).await });
    let (_, echo) = serve(&scratch, ECHO).await?;

    let mut tunnel = ports.connect(echo).await?;
    for _ in 0..10 {
        hears_itself(&mut tunnel, &"hello ".repeat(1000)).await?;
    }
    same("a command", scratch.text("echo there").await?, "there\n".into())?;
    let content = Box::pin(futures_util::stream::iter([Ok("content".into())]));
    scratch.files().write("file", content).await?;
    same("a file", scratch.text("cat file").await?, "content".into())?;

    check(!writing.is_finished(), || "16 MiB went to who does not read".into())?;
    writing.abort();
    Ok(())
}

async fn a_dropped_tunnel_ends_the_connection(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let ports = ports(&*scratch)?;
    let program = "print $c 'x'; my $b; 1 while sysread $c, $b, 9; open my $f, '>', 'gone'";
    let (_, port) = serve(&scratch, program).await?;
    let mut tunnel = ports.connect(port).await?;
    tunnel.read_u8().await?;

    drop(tunnel);

    scratch.until("[ -e gone ]").await
}

async fn a_program_that_ends_ends_its_tunnels(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let ports = ports(&*scratch)?;
    let (process, port) = serve(&scratch, "print $c 'x'; sleep 300").await?;
    let mut tunnel = ports.connect(port).await?;
    tunnel.read_u8().await?;

    scratch.kill(process).await?;

    // A connection closed in order or reset, as the kernel likes.
    let end = tunnel.read(&mut [0; 16]).await;
    check(!matches!(end, Ok(1..)), || format!("bytes from nowhere: {end:?}"))?;
    fails("connect", ErrorKind::NotFound, ports.connect(port).await.map(drop))?;
    Ok(())
}

async fn a_tunnel_is_lost_with_its_sandbox(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let ports = ports(&*scratch)?;
    let (_, port) = serve(&scratch, ECHO).await?;
    let mut tunnel = ports.connect(port).await?;
    hears_itself(&mut tunnel, "hello").await?;
    let sandbox = Arc::clone(scratch.sandbox());
    let ending = tokio::spawn(async move { sandbox.destroy().await });

    let mut buffer = [0; 16];
    broke(ErrorKind::Lost, tunnel.read(&mut buffer).await)?;
    match ending.await {
        Ok(ended) => ended?,
        Err(error) => return broken(error.to_string()),
    }

    broke(ErrorKind::Lost, tunnel.write(b"x").await)?;
    fails("connect", ErrorKind::Lost, ports.connect(port).await.map(drop))?;
    Ok(())
}

async fn another_daemon_reaches_ports(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let (_, port) = serve(&scratch, ECHO).await?;
    let found = stage.another_engine().attach(scratch.id()).await?;
    let Some(found) = found else { return broken("another engine does not find it") };

    let mut tunnel = ports(&*found)?.connect(port).await?;

    hears_itself(&mut tunnel, "hello").await
}

async fn what_listens_is_told(stage: Stage) -> CaseResult {
    let scratch = Scratch::new(&stage).await?;
    let ports = ports(&*scratch)?;
    same("at first", ports.listening().await?, Vec::new())?;
    let (process, port) = serve(&scratch, ECHO).await?;

    same("with a server", ports.listening().await?, vec![port])?;
    scratch.kill(process).await?;
    same("without it", ports.listening().await?, Vec::new())
}
