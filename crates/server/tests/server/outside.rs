//! Listening where others can reach it.

use std::sync::Arc;

use lathe_host::{Home, Host};
use lathe_protocol::Mode;
use lathe_server::{OnRestart, ServerError, ServerOptions, TlsFiles, bind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

use crate::kit::Recorded;

fn file(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server").join(name)
}

fn options(address: &str, root: &std::path::Path, tls: Option<TlsFiles>) -> ServerOptions {
    ServerOptions {
        address: address.parse().unwrap(),
        names: vec!["box.lan".to_owned()],
        roots: vec![root.to_owned()],
        tls,
        on_restart: OnRestart::Park,
        token: None,
    }
}

async fn bound(
    options: ServerOptions,
    home: &std::path::Path,
) -> Result<lathe_server::BoundServer, ServerError> {
    let plans = Arc::new(Recorded { cassette: String::new(), mode: Mode::Default });
    bind(Arc::new(Host::new(Home::at(home.to_owned()))), plans, options).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_others_reach_needs_a_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let (root, home) = (&folder.path().join("root"), &folder.path().join("home"));
    std::fs::create_dir(root).unwrap();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let refused = bound(options(address, root, None), home).await;
        assert!(matches!(refused, Err(ServerError::NeedsTls { .. })), "{address}");
    }
    // A key that is none.
    let files = TlsFiles { certificate: file("test-cert.pem"), key: file("outside.rs") };
    assert!(matches!(bound(options("0.0.0.0:0", root, Some(files)), home).await, Err(ServerError::Tls(_))));
    let nowhere = root.join("nowhere");
    assert!(matches!(
        bound(options("127.0.0.1:0", &nowhere, None), home).await,
        Err(ServerError::Root { .. })
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_certificate_it_speaks_tls_and_one_that_says_nothing_holds_nobody_up() {
    let (folder, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let files = TlsFiles { certificate: file("test-cert.pem"), key: file("test-key.pem") };
    let server = bound(options("0.0.0.0:0", folder.path(), Some(files)), home.path()).await.unwrap();
    let port = server.address.port();
    assert!(server.url().starts_with(&format!("https://box.lan:{port}/#token=")), "{}", server.url());
    let serving = tokio::spawn(server.serve(std::future::pending()));
    // It connects and never greets.
    let _silent = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(file("test-cert.pem")).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    for (host, status) in [
        ("box.lan", "200"),
        ("evil.test", "403"),
        ("127.0.0.1", "200"),
        ("localhost", "200"),
        ("192.0.2.1", "403"),
    ] {
        let stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let connector = TlsConnector::from(Arc::new(config.clone()));
        let mut stream = connector.connect(ServerName::try_from("localhost").unwrap(), stream).await.unwrap();
        let request = format!("GET /health HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        // A server that closes without a TLS farewell is accepted here.
        let _ = stream.read_to_string(&mut answer).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{host}: {answer}");
    }
    serving.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_address_that_is_printed_can_be_opened() {
    let (folder, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let files = || Some(TlsFiles { certificate: file("test-cert.pem"), key: file("test-key.pem") });
    let without_name = ServerOptions { names: Vec::new(), ..options("0.0.0.0:0", folder.path(), files()) };
    let server = bound(without_name, home.path()).await.unwrap();
    let wanted = format!("https://127.0.0.1:{}/#token=", server.address.port());
    assert!(server.url().starts_with(&wanted), "{}", server.url());
    // The address that it listens on can be opened, even if the server has names.
    let server = bound(options("127.0.0.1:0", folder.path(), files()), home.path()).await.unwrap();
    let wanted = format!("https://{}/#token=", server.address);
    assert!(server.url().starts_with(&wanted), "{}", server.url());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_root_that_shares_files_with_lathes_own_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().canonicalize().unwrap();
    for made in ["root/data/home/sub", "other"] {
        std::fs::create_dir_all(base.join(made)).unwrap();
    }
    std::os::unix::fs::symlink(base.join("root"), base.join("link")).unwrap();
    std::os::unix::fs::symlink(base.join("root/data"), base.join("other/link")).unwrap();
    for (root, home, refused) in [
        ("root", "root/data/home", true),
        ("root", "root/data/new", true),
        ("root/data/home", "root/data/home", true),
        ("root/data/home/sub", "root/data/home", true),
        ("link", "root/data/home", true),
        ("root", "link/data/home", true),
        ("root", "other/link/home", true),
        ("root", "other/link/new", true),
        ("other", "root/data/home", false),
        // A link in the root is not followed by any route.
        ("other", "other/link/home", false),
        ("root/data", "root/data2", false),
    ] {
        let bound = bound(options("127.0.0.1:0", &base.join(root), None), &base.join(home)).await;
        match bound {
            Err(error @ ServerError::HomeInRoot { .. }) => {
                let words = error.to_string();
                assert!(refused, "{root} {home}");
                assert!(words.contains("--root") && words.contains("LATHE_HOME"), "{words}");
            }
            Ok(_) => assert!(!refused, "{root} {home}"),
            Err(error) => panic!("{root} {home}: {error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_root_that_links_in_lathes_own_folder_lead_to_is_refused() {
    for (link, leads, refused) in [
        ("policy", "root/policy", true),
        ("server", "root/deep/server", true),
        ("config.toml", "root/config.toml", true),
        ("sessions", "../root/new", true),
        ("policy/mine.toml", "root/mine.toml", true),
        ("trust", "root", true),
        ("sessions", "", true),
        ("policy", "elsewhere", false),
        ("config.toml", "elsewhere/new.toml", false),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        for made in ["root/policy", "root/deep/server", "elsewhere", "home"] {
            std::fs::create_dir_all(base.join(made)).unwrap();
        }
        let place = base.join("home").join(link);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        let leads = if leads.starts_with("..") { leads.into() } else { base.join(leads) };
        std::os::unix::fs::symlink(&leads, &place).unwrap();
        match bound(options("127.0.0.1:0", &base.join("root"), None), &base.join("home")).await {
            Err(ServerError::HomeInRoot { .. }) => assert!(refused, "{link} {}", leads.display()),
            Ok(_) => assert!(!refused, "{link} {}", leads.display()),
            Err(error) => panic!("{link} {}: {error}", leads.display()),
        }
    }
}
