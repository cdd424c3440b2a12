//! SOCKS5 (RFC 1928): no authentication, CONNECT only.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::names::{HostDefect, RequestedHost};
use crate::refusal::Refusal;

/// The version, which is also the first byte of a client.
pub(crate) const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const CONNECT: u8 = 1;

/// The answer to a client that offers no acceptable method.
pub(crate) const NO_METHOD: [u8; 2] = [VERSION, 0xff];

/// A request for a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SocksRequest {
    /// The host as the client wrote it.
    pub(crate) asked: Vec<u8>,
    pub(crate) host: Result<RequestedHost, HostDefect>,
    pub(crate) port: u16,
}

/// Agrees on no authentication. `false`: the client does not offer that.
pub(crate) async fn greet(
    reader: &mut (impl AsyncRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
) -> Result<bool, Refusal> {
    let methods = async {
        let _version = reader.read_u8().await?;
        let mut methods = vec![0; usize::from(reader.read_u8().await?)];
        reader.read_exact(&mut methods).await?;
        io::Result::Ok(methods)
    };
    if !methods.await.map_err(gone)?.contains(&NO_AUTHENTICATION) {
        return Ok(false);
    }
    writer.write_all(&[VERSION, NO_AUTHENTICATION]).await.map_err(gone)?;
    Ok(true)
}

/// Reads the request.
pub(crate) async fn read_request(reader: &mut (impl AsyncRead + Unpin)) -> Result<SocksRequest, Refusal> {
    let mut start = [0; 4];
    reader.read_exact(&mut start).await.map_err(gone)?;
    let [version, command, reserved, kind] = start;
    if version != VERSION || reserved != 0 {
        return Err(Refusal::malformed("the SOCKS request is not of version 5"));
    }
    let (asked, host) = match kind {
        1 => {
            let mut octets = [0; 4];
            reader.read_exact(&mut octets).await.map_err(gone)?;
            let address = Ipv4Addr::from(octets);
            (address.to_string().into_bytes(), Ok(RequestedHost::address(address)))
        }
        3 => {
            let mut name = vec![0; usize::from(reader.read_u8().await.map_err(gone)?)];
            reader.read_exact(&mut name).await.map_err(gone)?;
            let host = RequestedHost::parse(&name);
            (name, host)
        }
        4 => {
            let mut octets = [0; 16];
            reader.read_exact(&mut octets).await.map_err(gone)?;
            let address = Ipv6Addr::from(octets);
            (address.to_string().into_bytes(), Ok(RequestedHost::address(address)))
        }
        _ => return Err(Refusal::other_address()),
    };
    let port = reader.read_u16().await.map_err(gone)?;
    if command != CONNECT {
        return Err(Refusal::other_command());
    }
    if port == 0 {
        return Err(Refusal::malformed("the port is 0"));
    }
    Ok(SocksRequest { asked, host, port })
}

fn gone(_: io::Error) -> Refusal {
    Refusal::gone()
}

/// A reply with a code; 0 is success. The address that the proxy connects from is nobody's business.
pub(crate) fn reply(code: u8) -> [u8; 10] {
    [VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0]
}
