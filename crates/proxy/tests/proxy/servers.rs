//! Servers on loopback, in place of those of the internet.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// A server that gives each connection to a function.
pub async fn server<F, T>(serve: F) -> SocketAddr
where
    F: Fn(TcpStream) -> T + Send + 'static,
    T: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    address
}

/// A server that sends everything back.
pub async fn echo() -> SocketAddr {
    server(|mut stream| async move {
        let (mut reader, mut writer) = stream.split();
        let _ = tokio::io::copy(&mut reader, &mut writer).await;
        let _ = writer.shutdown().await;
    })
    .await
}

/// A server that keeps what it receives until the client ends, and says nothing.
pub async fn listener() -> (SocketAddr, mpsc::UnboundedReceiver<Vec<u8>>) {
    let (sender, received) = mpsc::unbounded_channel();
    let address = server(move |mut stream| {
        let sender = sender.clone();
        async move {
            let mut all = Vec::new();
            let _ = stream.read_to_end(&mut all).await;
            let _ = sender.send(all);
        }
    })
    .await;
    (address, received)
}

/// A web server with one response. It tells of each request everything up to `end`, then answers. It keeps the connection
/// open, as if it had not understood that it is to close it, unless the response has no length of its own.
pub async fn web(
    end: &'static str,
    response: &'static str,
    closes: bool,
) -> (SocketAddr, mpsc::UnboundedReceiver<String>) {
    let (sender, requests) = mpsc::unbounded_channel();
    let address = server(move |mut stream| {
        let sender = sender.clone();
        async move {
            let mut request = Vec::new();
            while !request.ends_with(end.as_bytes()) {
                if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
                    break;
                }
            }
            let _ = stream.write_all(response.as_bytes()).await;
            if !closes {
                let _ = stream.read_to_end(&mut request).await;
            }
            let _ = sender.send(String::from_utf8_lossy(&request).into_owned());
        }
    })
    .await;
    (address, requests)
}
