//! One connection of a client, from its first byte to its record.

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::{Instant, timeout, timeout_at};

use crate::admit::admit;
use crate::body::BUFFER;
use crate::forward::{ForwardError, ForwardedRequest, forward_request};
use crate::head::{HttpHead, read_head};
use crate::names::{Authority, RequestedHost};
use crate::record::{ConnectionEnd, ProxyProtocol, Recording};
use crate::refusal::{Refusal, RefusalKind};
use crate::serve::Proxy;
use crate::socks;
use crate::tunnel::{TunnelError, carry_tunnel};

/// The most that is read from a client after a refusal.
const LINGER_MAX: u64 = 1024 * 1024;

/// The form in which a client can be told of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplyForm {
    /// Not at all: the client has said nothing, or its tunnel is open.
    Silent,
    Http,
    /// SOCKS, before a method is agreed on.
    SocksMethod,
    Socks,
}

impl ReplyForm {
    fn reply(self, refusal: &Refusal) -> Vec<u8> {
        match (self, refusal.kind) {
            (ReplyForm::Silent, _) | (_, RefusalKind::Gone) => Vec::new(),
            (ReplyForm::Http, _) => refusal.response(),
            (ReplyForm::SocksMethod, _) => socks::NO_METHOD.to_vec(),
            (ReplyForm::Socks, _) => socks::reply(refusal.socks_code()).to_vec(),
        }
    }
}

/// Serves a client.
pub(crate) async fn carry(client: TcpStream, proxy: &Proxy, recording: Recording) {
    let _ = client.set_nodelay(true);
    let (reader, writer) = client.into_split();
    let reader = BufReader::with_capacity(BUFFER, reader);
    let mut conversation = Conversation {
        reader,
        writer,
        proxy,
        recording,
        form: ReplyForm::Silent,
        deadline: Instant::now() + proxy.limits.head,
    };
    let outcome = conversation.serve().await;
    let Conversation { reader, writer, recording, form, .. } = conversation;
    let reply = match outcome {
        Ok(end) => {
            recording.end(end);
            Vec::new()
        }
        Err(refusal) => {
            recording.end_refused(&refusal);
            form.reply(&refusal)
        }
    };
    let _ = timeout(proxy.limits.linger, close(reader, writer, &reply)).await;
}

/// Sends a reply and closes. A connection that is closed with unread bytes is reset, and a reset can take the reply with it,
/// so the client gets a moment to close first.
async fn close(reader: BufReader<OwnedReadHalf>, mut writer: OwnedWriteHalf, reply: &[u8]) {
    if writer.write_all(reply).await.is_ok() && writer.shutdown().await.is_ok() {
        let _ = tokio::io::copy(&mut reader.take(LINGER_MAX), &mut tokio::io::sink()).await;
    }
}

struct Conversation<'a> {
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    proxy: &'a Proxy,
    recording: Recording,
    form: ReplyForm,
    /// The end of the time for the request.
    deadline: Instant,
}

impl Conversation<'_> {
    async fn serve(&mut self) -> Result<ConnectionEnd, Refusal> {
        let first = match timeout_at(self.deadline, self.reader.fill_buf()).await {
            Ok(Ok([first, ..])) => *first,
            Ok(Ok([]) | Err(_)) => return Err(Refusal::gone()),
            Err(_) => return Err(Refusal::late()),
        };
        match first {
            socks::VERSION => self.serve_socks().await,
            _ => self.serve_http(first).await,
        }
    }

    async fn serve_http(&mut self, first: u8) -> Result<ConnectionEnd, Refusal> {
        self.form = ReplyForm::Http;
        // TLS to the proxy itself, for example, would never send the end of a head.
        if !first.is_ascii_graphic() {
            return Err(Refusal::malformed("it is not HTTP"));
        }
        let head = timeout_at(self.deadline, read_head(&mut self.reader)).await;
        let head = HttpHead::parse(&head.map_err(|_| Refusal::late())??)?;
        let target = head.target()?;
        self.recording.note_asked(target.protocol, target.authority.as_bytes());
        let authority = Authority::parse(target.authority.as_bytes()).map_err(Refusal::of_defect)?;
        let port = match (authority.port, target.protocol) {
            (Some(port), _) => port,
            (None, ProxyProtocol::Http) => 80,
            (None, ProxyProtocol::Connect | ProxyProtocol::Socks5) => {
                return Err(Refusal::malformed("CONNECT names no port"));
            }
        };
        let host = authority.host;
        self.recording.note_host(&host, port);
        head.check_host(target.protocol, &host, port)?;
        let body = head.body_length()?;
        let server = self.admit(&host, port).await?;
        if target.protocol == ProxyProtocol::Connect {
            return self.tunnel(b"HTTP/1.1 200 Connection established\r\n\r\n", server, &host).await;
        }
        let request = ForwardedRequest {
            head: head.forwarded(&host, port, target.path),
            body,
            method: &head.method,
            minor: head.minor,
        };
        let counts = self.recording.counts();
        match forward_request(request, &mut self.reader, &mut self.writer, server, counts).await {
            Ok(()) => Ok(ConnectionEnd::Closed),
            Err(ForwardError::Broken(why)) => Ok(ConnectionEnd::Broken(why)),
            Err(ForwardError::NoAnswer(why)) => {
                Err(Refusal::unreachable(RefusalKind::NoAnswer, &host, port, why))
            }
        }
    }

    async fn serve_socks(&mut self) -> Result<ConnectionEnd, Refusal> {
        self.form = ReplyForm::SocksMethod;
        let greeted = timeout_at(self.deadline, socks::greet(&mut self.reader, &mut self.writer)).await;
        if !greeted.map_err(|_| Refusal::late())?? {
            return Err(Refusal::malformed("the SOCKS client wants to authenticate"));
        }
        self.form = ReplyForm::Socks;
        let request = timeout_at(self.deadline, socks::read_request(&mut self.reader)).await;
        let request = request.map_err(|_| Refusal::late())??;
        self.recording.note_asked(ProxyProtocol::Socks5, &request.asked);
        let host = request.host.map_err(Refusal::of_defect)?;
        self.recording.note_host(&host, request.port);
        let server = self.admit(&host, request.port).await?;
        self.tunnel(&socks::reply(0), server, &host).await
    }

    async fn admit(&mut self, host: &RequestedHost, port: u16) -> Result<TcpStream, Refusal> {
        let Proxy { rules, answers, seams, limits, .. } = self.proxy;
        admit(rules, answers, seams.as_ref(), limits, (host, port), &mut self.recording).await
    }

    /// Opens a tunnel and carries it.
    async fn tunnel(
        &mut self,
        opened: &[u8],
        server: TcpStream,
        host: &RequestedHost,
    ) -> Result<ConnectionEnd, Refusal> {
        self.form = ReplyForm::Silent;
        if let Err(error) = self.writer.write_all(opened).await {
            return Ok(ConnectionEnd::Broken(format!("client: {error}")));
        }
        let counts = self.recording.counts();
        let time = self.proxy.limits.head;
        match carry_tunnel(&mut self.reader, &mut self.writer, server, host, time, counts).await {
            Ok(()) => Ok(ConnectionEnd::Closed),
            Err(TunnelError::Broken(why)) => Ok(ConnectionEnd::Broken(why)),
            Err(TunnelError::Greeting(why)) => Err(Refusal::of_greeting(why)),
        }
    }
}
