//! A tunnel: bytes in both directions, after a look at the first ones of the client.

use std::time::Duration;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use crate::body::{BUFFER, CopyError, copy_to_end, write_counted};
use crate::names::RequestedHost;
use crate::record::ByteCounts;
use crate::tls::{Greeting, HELLO_MAX, read_greeting};

/// The longest beginning of a tunnel that is looked at: a `ClientHello` in small records.
const GREETING_MAX: usize = 2 * HELLO_MAX;

/// The reasons why a tunnel did not end in order.
#[derive(Debug)]
pub(crate) enum TunnelError {
    /// TLS in the tunnel is not for the host that was allowed.
    Greeting(String),
    Broken(String),
}

/// Carries a tunnel until both sides have ended it. Each side may end its own direction first.
pub(crate) async fn carry_tunnel(
    client_reader: &mut (impl AsyncBufRead + Unpin),
    client_writer: &mut (impl AsyncWrite + Unpin),
    server: TcpStream,
    host: &RequestedHost,
    greeting_time: Duration,
    counts: &ByteCounts,
) -> Result<(), TunnelError> {
    let (server_reader, mut server_writer) = server.into_split();
    let mut server_reader = BufReader::with_capacity(BUFFER, server_reader);
    // The greeting is awaited while the other direction is open already: in some protocols the server speaks first.
    let up = async {
        let greeting = read_allowed_greeting(client_reader, host, greeting_time).await?;
        let sent = async {
            write_counted(&mut server_writer, &greeting, &counts.up).await?;
            drop(greeting);
            copy_to_end(client_reader, &mut server_writer, &counts.up).await
        };
        match sent.await {
            Ok(()) => {
                // The server may have closed completely.
                let _ = server_writer.shutdown().await;
                Ok(None)
            }
            Err(CopyError::Read(error)) => Err(TunnelError::Broken(format!("client: {error}"))),
            // The server takes no more, but what it sent before is still delivered.
            Err(CopyError::Write(error)) => Ok(Some(TunnelError::Broken(format!("server: {error}")))),
        }
    };
    let down = async {
        match copy_to_end(&mut server_reader, client_writer, &counts.down).await {
            Ok(()) => {
                let _ = client_writer.shutdown().await;
                Ok(())
            }
            Err(CopyError::Read(error)) => Err(TunnelError::Broken(format!("server: {error}"))),
            Err(CopyError::Write(error)) => Err(TunnelError::Broken(format!("client: {error}"))),
        }
    };
    match tokio::try_join!(up, down)? {
        (None, ()) => Ok(()),
        (Some(error), ()) => Err(error),
    }
}

/// Reads the first bytes of the client, until it is known that they are not TLS for another host.
async fn read_allowed_greeting(
    reader: &mut (impl AsyncBufRead + Unpin),
    host: &RequestedHost,
    time: Duration,
) -> Result<Vec<u8>, TunnelError> {
    let refused = |why: &str| Err(TunnelError::Greeting(why.to_owned()));
    let mut greeting = Vec::new();
    let mut deadline = None;
    loop {
        let read = async {
            match deadline {
                // A client may open a tunnel long before it uses it.
                None => Ok(reader.fill_buf().await),
                Some(deadline) => timeout_at(deadline, reader.fill_buf()).await,
            }
        };
        let bytes = match read.await {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(error)) => return Err(TunnelError::Broken(format!("client: {error}"))),
            Err(_) => return refused("the ClientHello did not arrive in time"),
        };
        if bytes.is_empty() {
            return if greeting.is_empty() {
                Ok(greeting)
            } else {
                refused("the ClientHello is not complete")
            };
        }
        let taken = bytes.len();
        greeting.extend_from_slice(bytes);
        reader.consume(taken);
        deadline = deadline.or_else(|| Some(Instant::now() + time));
        match read_greeting(&greeting) {
            Greeting::Other | Greeting::Hello { server_name: None } => return Ok(greeting),
            Greeting::Hello { server_name: Some(name) } => {
                if RequestedHost::parse(&name).as_ref() == Ok(host) {
                    return Ok(greeting);
                }
                let name: String =
                    String::from_utf8_lossy(&name).chars().filter(|c| !c.is_control()).take(255).collect();
                return refused(&format!("SNI names another host: `{name}`"));
            }
            Greeting::Broken(why) => return refused(why),
            Greeting::Partial if greeting.len() > GREETING_MAX => {
                return refused("the ClientHello is too long");
            }
            Greeting::Partial => {}
        }
    }
}
