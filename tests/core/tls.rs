//! TLS: the certificates that are trusted, and the errors of refusals.
//!
//! The embedded server has no TLS. The client's own decisions are tested against an embedded server behind a
//! terminator, everything else against a real server.

pub(crate) mod authority;
mod terminator;

use authority::{Authority, Issued, Validity};
use docent::client::{ClientBuilder, ConnectionStatus};
use docent::inspect::{ServerState, Vitals};
use docent::node::{Acl, Permissions};
use docent::{Client, ConnectionState, CreateMode, ErrorKind, Mutex, Tls};
use docent_battery::{Backend, ServerOptions, TestServer};
use docent_tests::{SESSION, builder, connect, soon, tick, with_causes, within};
use std::fs;
use std::net::SocketAddr;
use std::time::Duration;
use terminator::Terminator;
use tokio_rustls::rustls::SupportedProtocolVersion;
use tokio_rustls::rustls::version::{TLS12, TLS13};

const TIMEOUT: Duration = Duration::from_secs(2);

const HOSTS: [&str; 2] = ["localhost", "127.0.0.1"];

/// Authority that has issued the certificates of a server and a client.
struct Keys {
    authority: Authority,
    server: Issued,
    client: Issued,
}

impl Keys {
    fn new(validity: Validity) -> Self {
        let authority = Authority::new();
        let server = authority.issue(&HOSTS, validity);
        let client = authority.issue(&["client"], Validity::Now);
        Self { authority, server, client }
    }

    /// Settings that the server accepts.
    fn tls(&self) -> Tls {
        Tls::new().ca_pem(self.authority.pem()).client_identity_pem(self.client.chain(), self.client.key())
    }
}

fn secure(connect_string: &str, tls: Tls) -> ClientBuilder {
    Client::builder(connect_string).tls(tls).session_timeout(SESSION).server_tick(tick())
}

/// Tries to connect. The attempt must fail by its deadline with `reason`. On a busy machine, a server may
/// need longer to respond.
async fn is_refused(connect_string: &str, tls: Tls, reason: &str) {
    let builder = secure(connect_string, tls).operation_timeout(TIMEOUT);
    let mut text = String::new();
    for _ in 0..10 {
        let error = within(TIMEOUT * 4, builder.clone().connect()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        text = with_causes(&error);
        if text.contains(reason) {
            return;
        }
    }
    panic!("{text}");
}

async fn is_served(connect_string: &str, tls: Tls) {
    let client = soon(secure(connect_string, tls).connect()).await.unwrap();
    assert_eq!(client.exists("/none").await.unwrap(), None);
    soon(client.close()).await;
}

/// Starts an embedded server behind a TLS terminator.
async fn terminated(keys: &Keys, version: &'static SupportedProtocolVersion) -> (TestServer, Terminator) {
    let server = Backend::Embedded.start().await;
    let terminator = Terminator::start(&keys.server, &keys.authority, version, server.address()).await;
    (server, terminator)
}

fn at(host: &str, address: SocketAddr) -> String {
    format!("{host}:{}", address.port())
}

#[tokio::test]
async fn servers_are_reached_by_name_and_by_address_over_both_versions() {
    for version in [&TLS12, &TLS13] {
        let keys = Keys::new(Validity::Now);
        let (_server, terminator) = terminated(&keys, version).await;
        for host in HOSTS {
            is_served(&at(host, terminator.address()), keys.tls()).await;
        }
    }
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused_and_names_it() {
    let authority = Authority::new();
    let server = authority.issue(&["zk.example.org"], Validity::Now);
    let client = authority.issue(&["client"], Validity::Now);
    let keys = Keys { authority, server, client };
    let (_server, terminator) = terminated(&keys, &TLS13).await;
    let connect_string = at("127.0.0.1", terminator.address());
    is_refused(&connect_string, keys.tls(), "certificate not valid for name \"127.0.0.1\"").await;
    is_refused(&connect_string, keys.tls().server_name("other.example.org"), "other.example.org").await;
    is_served(&connect_string, keys.tls().server_name("zk.example.org")).await;
}

#[tokio::test]
async fn a_certificate_of_an_unknown_authority_is_refused() {
    let keys = Keys::new(Validity::Now);
    let (_server, terminator) = terminated(&keys, &TLS13).await;
    let tls =
        Tls::new().ca_pem(Authority::new().pem()).client_identity_pem(keys.client.chain(), keys.client.key());
    is_refused(&at("127.0.0.1", terminator.address()), tls.clone(), "invalid peer certificate").await;
    // It is enough that one of several authorities is known.
    is_served(&at("127.0.0.1", terminator.address()), tls.ca_pem(keys.authority.pem())).await;
}

#[tokio::test]
async fn certificates_outside_their_validity_period_are_refused() {
    for (validity, reason) in [(Validity::Over, "certificate expired"), (Validity::Later, "not valid yet")] {
        let keys = Keys::new(validity);
        let (_server, terminator) = terminated(&keys, &TLS13).await;
        is_refused(&at("127.0.0.1", terminator.address()), keys.tls(), reason).await;
    }
}

#[tokio::test]
async fn a_client_without_a_certificate_learns_that_one_is_required() {
    for version in [&TLS12, &TLS13] {
        let keys = Keys::new(Validity::Now);
        let (_server, terminator) = terminated(&keys, version).await;
        let tls = Tls::new().ca_pem(keys.authority.pem());
        is_refused(&at("127.0.0.1", terminator.address()), tls, "fatal alert").await;
    }
}

#[tokio::test]
async fn a_server_without_tls_is_refused() {
    let keys = Keys::new(Validity::Now);
    let server = Backend::Embedded.start().await;
    is_refused(&server.connect_string(), keys.tls(), "tls handshake eof").await;
}

#[tokio::test]
async fn input_that_is_not_pem_is_refused_before_anything_is_sent() {
    let keys = Keys::new(Validity::Now);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("none.pem");
    let other = keys.authority.issue(&["other"], Validity::Now);
    let trusting = || Tls::new().ca_pem(keys.authority.pem());
    for (tls, rule) in [
        (Tls::new(), "at least one certificate authority must be trusted"),
        (Tls::new().ca_pem("nothing"), "has no certificate in PEM"),
        (Tls::new().ca_pem_file(&file), "none.pem"),
        (trusting().client_identity_pem("", keys.client.key()), "has no certificate in PEM"),
        (trusting().client_identity_pem(keys.client.chain(), "nothing"), "key of the client identity"),
        (trusting().client_identity_pem(keys.client.chain(), other.key()), "client identity"),
        (trusting().client_identity_pem_files(&file, &file), "none.pem"),
        (trusting().server_name("not a name"), "server name \"not a name\""),
    ] {
        let error = Client::builder("localhost").tls(tls).build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains(rule), "{error}");
    }
}

#[tokio::test]
async fn files_are_re_read_for_each_link_and_the_last_valid_ones_are_kept() {
    let (old, new) = (Keys::new(Validity::Now), Keys::new(Validity::Now));
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let write = |name: &str, pem: String| fs::write(path(name), pem).unwrap();
    let replace = |keys: &Keys| {
        write("ca.pem", keys.authority.pem());
        write("client.pem", keys.client.chain());
        write("client.key", keys.client.key());
    };
    replace(&old);
    let server = Backend::Embedded.start().await;
    let serving =
        async |keys: &Keys| Terminator::start(&keys.server, &keys.authority, &TLS13, server.address()).await;
    let first = serving(&old).await;
    let tls = Tls::new()
        .ca_pem_file(path("ca.pem"))
        .client_identity_pem_files(path("client.pem"), path("client.key"));
    let client = soon(secure(&at("localhost", first.address()), tls).connect()).await.unwrap();
    let moves_to = async |terminator: &Terminator| {
        let suspensions = client.state().current().suspensions;
        client.update_servers(&at("localhost", terminator.address())).unwrap();
        let back =
            |now: &ConnectionStatus| *now == ConnectionState::Connected && now.suspensions > suspensions;
        assert_eq!(soon(client.state().wait_for(back)).await.unwrap().generation, 1);
    };

    replace(&new);
    let second = serving(&new).await;
    moves_to(&second).await;

    // The key already belongs to the new certificate, while the old certificate is still in place. Then the
    // authority's file is being written.
    write("client.pem", old.client.chain());
    moves_to(&serving(&new).await).await;
    write("client.pem", new.client.chain());
    write("ca.pem", String::new());
    moves_to(&serving(&new).await).await;

    replace(&old);
    moves_to(&first).await;
}

/// Starts a real server that supports TLS `version` only and requires client certificates.
async fn real(keys: &Keys, version: &str) -> (TestServer, SocketAddr, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, pem: String| {
        let path = folder.path().join(name);
        fs::write(&path, pem).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let key_store = file("server.pem", keys.server.key() + &keys.server.chain());
    let trust_store = file("ca.pem", keys.authority.pem());
    let options = ServerOptions::default()
        .secure_port(true)
        .property("zookeeper.serverCnxnFactory", "org.apache.zookeeper.server.NettyServerCnxnFactory")
        .property("zookeeper.ssl.keyStore.location", key_store)
        .property("zookeeper.ssl.keyStore.type", "PEM")
        .property("zookeeper.ssl.trustStore.location", trust_store)
        .property("zookeeper.ssl.trustStore.type", "PEM")
        .property("zookeeper.ssl.clientAuth", "need")
        .property("zookeeper.ssl.protocol", version)
        .property("zookeeper.ssl.enabledProtocols", version);
    // All suites that ZooKeeper 3.8 permits by default belong to TLS 1.2.
    let options = match version {
        "TLSv1.3" => options.property("zookeeper.ssl.ciphersuites", "TLS_AES_128_GCM_SHA256"),
        _ => options,
    };
    let server = Backend::Real.start_own_with(options).await;
    let address = server.as_real().unwrap().secure_address().unwrap();
    (server, address, folder)
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn a_real_server_is_reached_over_both_versions_and_identifies_the_client_by_its_certificate() {
    for version in ["TLSv1.2", "TLSv1.3"] {
        let keys = Keys::new(Validity::Now);
        let (server, address, folder) = real(&keys, version).await;
        let client =
            soon(builder(&server, at("localhost", address)).tls(keys.tls()).connect()).await.unwrap();
        // The server answers four-letter words over TLS, too.
        let transport = docent::recipe::transport(&client);
        let vitals = Vitals::query(&*transport, &client.servers()[0], TIMEOUT).await;
        assert_eq!(vitals.state, ServerState::Serving, "{vitals:?}");
        let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
        guard.transaction().create("/a", "x", CreateMode::Persistent).commit().await.unwrap();
        assert_eq!(client.get("/a").await.unwrap().data, "x");
        soon(guard.release()).await.unwrap();
        // A certificate is an identity, and the client owns the nodes that it created.
        let acl = client.acl("/a").await.unwrap();
        assert_eq!((acl.entries.len(), acl.entries[0].scheme.as_str()), (1, "x509"));
        assert_eq!(connect(&server).await.get("/a").await.unwrap_err().kind(), ErrorKind::NoAuth);

        let file = |name: &str, pem: String| {
            let path = folder.path().join(name);
            fs::write(&path, pem).unwrap();
            path
        };
        let (chain, key) = (file("client.pem", keys.client.chain()), file("client.key", keys.client.key()));
        let ca = folder.path().join("ca.pem");
        let tls = Tls::new().ca_pem_file(ca).client_identity_pem_files(chain, key);
        // Over TLS a password may be sent without explicit permission.
        let both = builder(&server, address.to_string()).tls(tls).auth_digest("user", "word");
        let both = soon(both.connect()).await.unwrap();
        both.create("/b", "", CreateMode::Persistent).await.unwrap();
        assert!(both.acl("/b").await.unwrap().entries.contains(&Acl::digest(
            "user",
            "word",
            Permissions::ALL
        )));
    }
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn a_real_server_and_a_client_without_mutual_trust_disconnect_by_the_deadline() {
    let keys = Keys::new(Validity::Now);
    let (_server, address, _folder) = real(&keys, "TLSv1.2").await;
    let connect_string = address.to_string();
    let stranger = Keys::new(Validity::Now);
    is_refused(&connect_string, keys.tls().server_name("zk.example.org"), "zk.example.org").await;
    let wrong_authority = Tls::new()
        .ca_pem(stranger.authority.pem())
        .client_identity_pem(keys.client.chain(), keys.client.key());
    is_refused(&connect_string, wrong_authority, "invalid peer certificate").await;
    is_refused(&connect_string, Tls::new().ca_pem(keys.authority.pem()), "fatal alert").await;
    let wrong_client = Tls::new()
        .ca_pem(keys.authority.pem())
        .client_identity_pem(stranger.client.chain(), stranger.client.key());
    is_refused(&connect_string, wrong_client, "fatal alert").await;
    is_served(&connect_string, keys.tls()).await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn a_real_server_whose_certificate_expired_is_refused() {
    let keys = Keys::new(Validity::Over);
    let (_server, address, _folder) = real(&keys, "TLSv1.2").await;
    is_refused(&address.to_string(), keys.tls(), "certificate expired").await;
}
