//! The needs of a proxy from outside: names, connections, the user, and a place for records.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use crate::record::ConnectionRecord;

/// The most queries at once. Each occupies a thread of those that the whole process has for files and names, so a jail must not
/// be able to take all of them. A thread stays occupied until the system has given up, even if nobody waits any more.
const QUERIES_MAX: usize = 64;

/// A boxed future.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The user's answer about a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostAnswer {
    Allow,
    Refuse,
}

/// The effects of a proxy.
pub trait Seams: Send + Sync + 'static {
    /// The addresses of a name. It is called at most once for a connection, only for a name that is allowed, and never for
    /// an address.
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> Boxed<'a, io::Result<Vec<SocketAddr>>>;

    /// A connection to an address that was checked.
    fn connect(&self, address: SocketAddr) -> Boxed<'_, io::Result<TcpStream>>;

    /// The user's answer about a host that no rule names. It is called only if the rules say so, once for each host and port.
    fn ask<'a>(&'a self, host: &'a str, port: u16) -> Boxed<'a, HostAnswer>;

    /// Takes the record of a connection, exactly once for each. It is called in the task of the connection, also while that
    /// is stopped or unwinds, so it must return at once and must not panic.
    fn record(&self, record: ConnectionRecord);
}

type RecordFunction = Box<dyn Fn(ConnectionRecord) + Send + Sync>;
type AskFunction = Box<dyn Fn(String, u16) -> Boxed<'static, HostAnswer> + Send + Sync>;

/// The resolver and the network of this machine.
pub struct SystemSeams {
    queries: Arc<Semaphore>,
    take_record: RecordFunction,
    ask_user: AskFunction,
}

impl SystemSeams {
    /// Seams without a user: every question is answered with a no.
    pub fn headless(take_record: impl Fn(ConnectionRecord) + Send + Sync + 'static) -> Self {
        Self::new(take_record, |_, _| Box::pin(std::future::ready(HostAnswer::Refuse)))
    }

    pub fn new(
        take_record: impl Fn(ConnectionRecord) + Send + Sync + 'static,
        ask_user: impl Fn(String, u16) -> Boxed<'static, HostAnswer> + Send + Sync + 'static,
    ) -> Self {
        Self {
            queries: Arc::new(Semaphore::new(QUERIES_MAX)),
            take_record: Box::new(take_record),
            ask_user: Box::new(ask_user),
        }
    }
}

impl Seams for SystemSeams {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> Boxed<'a, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move {
            let place = Arc::clone(&self.queries).acquire_owned().await.map_err(io::Error::other)?;
            let host = host.to_owned();
            let query = tokio::task::spawn_blocking(move || {
                let _place = place;
                Ok((host.as_str(), port).to_socket_addrs()?.collect())
            });
            query.await.map_err(io::Error::other)?
        })
    }

    fn connect(&self, address: SocketAddr) -> Boxed<'_, io::Result<TcpStream>> {
        Box::pin(TcpStream::connect(address))
    }

    fn ask<'a>(&'a self, host: &'a str, port: u16) -> Boxed<'a, HostAnswer> {
        (self.ask_user)(host.to_owned(), port)
    }

    fn record(&self, record: ConnectionRecord) {
        (self.take_record)(record);
    }
}
