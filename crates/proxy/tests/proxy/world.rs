//! A proxy with seams that are tables, and clients for it.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use lathe_proxy::{Boxed, ConnectionRecord, HostAnswer, HostRules, Proxy, ProxyLimits, Seams, UnlistedHosts};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The address of `example.com` in the tests.
pub const PUBLIC: &str = "93.184.216.34";

/// Effects that are tables, and what was asked of them.
pub struct TestSeams {
    /// The answers of the resolver, in turn; the last one stays.
    names: Mutex<HashMap<String, VecDeque<Vec<IpAddr>>>>,
    /// The listeners that addresses lead to. Every other address refuses, and `None` is silent.
    routes: Mutex<HashMap<SocketAddr, Option<SocketAddr>>>,
    answer: HostAnswer,
    /// Permits to answer a question.
    pub may_answer: Semaphore,
    pub queries: Mutex<Vec<String>>,
    pub connects: Mutex<Vec<SocketAddr>>,
    pub questions: Mutex<Vec<String>>,
    records: mpsc::UnboundedSender<ConnectionRecord>,
}

impl Seams for TestSeams {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> Boxed<'a, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move {
            self.queries.lock().push(host.to_owned());
            let mut names = self.names.lock();
            let answers = names.get_mut(host).ok_or_else(|| io::Error::other("no such name"))?;
            let answer = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
            Ok(answer.unwrap_or_default().into_iter().map(|address| SocketAddr::new(address, port)).collect())
        })
    }

    fn connect(&self, address: SocketAddr) -> Boxed<'_, io::Result<TcpStream>> {
        Box::pin(async move {
            self.connects.lock().push(address);
            let route = self.routes.lock().get(&address).copied();
            match route {
                Some(Some(listener)) => TcpStream::connect(listener).await,
                Some(None) => std::future::pending().await,
                None => Err(io::ErrorKind::ConnectionRefused.into()),
            }
        })
    }

    fn ask<'a>(&'a self, host: &'a str, port: u16) -> Boxed<'a, HostAnswer> {
        Box::pin(async move {
            self.questions.lock().push(format!("{host}:{port}"));
            self.may_answer.acquire().await.unwrap().forget();
            self.answer
        })
    }

    fn record(&self, record: ConnectionRecord) {
        // A test may have ended before the last records.
        let _ = self.records.send(record);
    }
}

/// The wishes of a test for its proxy.
pub struct Setup {
    pub allow: Vec<&'static str>,
    pub deny: Vec<&'static str>,
    pub unlisted: UnlistedHosts,
    pub answer: HostAnswer,
    pub limits: ProxyLimits,
}

impl Setup {
    pub fn allowing(allow: &[&'static str]) -> Self {
        Self {
            allow: allow.to_vec(),
            deny: Vec::new(),
            unlisted: UnlistedHosts::Deny,
            answer: HostAnswer::Refuse,
            // Nothing may end by time here, unless a test wants it.
            limits: ProxyLimits {
                head: Duration::from_secs(3600),
                connect: Duration::from_secs(3600),
                linger: Duration::from_secs(3600),
                ..ProxyLimits::default()
            },
        }
    }

    pub async fn start(self) -> World {
        let (sender, records) = mpsc::unbounded_channel();
        let seams = Arc::new(TestSeams {
            names: Mutex::default(),
            routes: Mutex::default(),
            answer: self.answer,
            may_answer: Semaphore::new(0),
            queries: Mutex::default(),
            connects: Mutex::default(),
            questions: Mutex::default(),
            records: sender,
        });
        let rules = Arc::new(HostRules::parse(&self.allow, &self.deny, self.unlisted).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let proxy = Proxy::new(rules, Arc::clone(&seams) as Arc<dyn Seams>, self.limits);
        let serving = tokio::spawn(proxy.serve(listener, stop.clone()));
        let world = World { address, seams, records, stop, serving };
        world.name("example.com", &[PUBLIC]);
        world
    }
}

/// A running proxy.
pub struct World {
    pub address: SocketAddr,
    pub seams: Arc<TestSeams>,
    records: mpsc::UnboundedReceiver<ConnectionRecord>,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl World {
    pub async fn allowing(allow: &[&'static str]) -> Self {
        Setup::allowing(allow).start().await
    }

    /// Adds an answer of the resolver, after earlier ones for the same name.
    pub fn name(&self, name: &str, addresses: &[&str]) {
        let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
        self.seams.names.lock().entry(name.to_owned()).or_default().push_back(addresses);
    }

    /// Leads an address to a listener.
    pub fn route(&self, address: &str, listener: SocketAddr) {
        self.seams.routes.lock().insert(address.parse().unwrap(), Some(listener));
    }

    /// Makes an address one that does not answer at all.
    pub fn silence(&self, address: &str) {
        self.seams.routes.lock().insert(address.parse().unwrap(), None);
    }

    pub fn queries(&self) -> Vec<String> {
        self.seams.queries.lock().clone()
    }

    pub fn connects(&self) -> Vec<String> {
        self.seams.connects.lock().iter().map(SocketAddr::to_string).collect()
    }

    pub fn questions(&self) -> Vec<String> {
        self.seams.questions.lock().clone()
    }

    /// Waits for the next record.
    pub async fn record(&mut self) -> ConnectionRecord {
        self.records.recv().await.unwrap()
    }

    /// Stops the proxy and gives the records that no test has taken.
    pub async fn stop(mut self) -> Vec<ConnectionRecord> {
        self.stop.cancel();
        self.serving.await.unwrap();
        let mut left = Vec::new();
        while let Ok(record) = self.records.try_recv() {
            left.push(record);
        }
        left
    }

    pub async fn client(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends bytes and gives everything that is answered. The client leaves its own direction open, as most do.
    pub async fn send(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut client = self.client().await;
        client.write_all(bytes.as_ref()).await.unwrap();
        read_all(&mut client).await
    }

    /// Asks for a tunnel by CONNECT, and gives the answer's first line.
    pub async fn ask_connect(&self, authority: &str) -> (TcpStream, String) {
        let mut client = self.client().await;
        client.write_all(&connect(authority)).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(client.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        (client, head.lines().next().unwrap().to_owned())
    }

    /// Opens a tunnel to an allowed host.
    pub async fn tunnel(&self, authority: &str) -> TcpStream {
        let (client, line) = self.ask_connect(authority).await;
        assert_eq!(line, "HTTP/1.1 200 Connection established");
        client
    }

    /// The status of an answer to CONNECT.
    pub async fn status(&self, authority: &str) -> u16 {
        status(&self.ask_connect(authority).await.1)
    }
}

/// A CONNECT request.
pub fn connect(authority: &str) -> Vec<u8> {
    format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n").into_bytes()
}

/// A GET request for a URL through a proxy.
pub fn get(authority: &str) -> Vec<u8> {
    format!("GET http://{authority}/ HTTP/1.1\r\nHost: {authority}\r\n\r\n").into_bytes()
}

/// The status in the first line of a response.
pub fn status(response: &str) -> u16 {
    response.split(' ').nth(1).unwrap_or_else(|| panic!("{response:?}")).parse().unwrap()
}

pub async fn read_all(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).await.unwrap();
    String::from_utf8_lossy(&all).into_owned()
}
