//! `docent doctor` when no session can be opened.

use crate::docent_command::{Ended, PATIENCE};
use crate::doctor::{assert_failed, doctor, findings};
use docent::server::Server;
use docent_battery::{Port, RealEnsemble, RealServer};
use docent_testkit::eventually;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

#[tokio::test]
async fn a_port_without_a_listener_is_reported() {
    let port = Port::claim().unwrap();
    let ended = doctor(&port.address().to_string(), &[]).await;
    assert_failed(&ended, "port", "connection refused", "start the server");
    assert_eq!((ended.code, &*ended.stderr), (69, "docent: 2 checks failed\n"));
}

#[tokio::test]
async fn an_unknown_host_name_is_reported() {
    let ended = doctor("nobody.invalid:2181", &[]).await;
    assert_failed(&ended, "name", "nobody.invalid", "correct the name");
    assert_eq!(ended.code, 69);
}

#[tokio::test]
async fn a_port_of_a_web_server_is_not_zookeeper() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 64];
            // Like a web server, it answers only after the end of a line.
            while let Ok(length) = stream.read(&mut request).await
                && length > 0
            {
                if request[..length].contains(&b'\n') {
                    stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
                    break;
                }
            }
        }
    });
    let ended = doctor(&address.to_string(), &[]).await;
    assert_failed(&ended, "port", "not ZooKeeper: its answer begins with \"HTTP/1.1 400", "clientPort");
    assert_eq!(ended.code, 69);
}

#[tokio::test]
async fn tls_and_plain_ports_are_distinguished() {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let config = config.with_single_cert(vec![cert.der().clone()], key.into()).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let accepted = acceptor.clone().accept(stream);
            tokio::spawn(async move { accepted.await.map(drop) });
        }
    });
    let ended = doctor(&address.to_string(), &[]).await;
    assert_failed(&ended, "port", "uses TLS, but this client does not", "--tls-ca");
    assert_eq!(ended.code, 69);

    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, cert.pem()).unwrap();
    let server = Server::start().await.unwrap();
    let ended = doctor(server.connect_string(), &["--tls-ca", ca.to_str().unwrap()]).await;
    assert_failed(&ended, "port", "without TLS, but this client is set to use TLS", "secureClientPort");
    assert_eq!(ended.code, 69);
}

#[tokio::test]
async fn a_failure_names_the_server_of_two_that_is_down() {
    let (server, port) = (Server::start().await.unwrap(), Port::claim().unwrap());
    let follower = server.follower().start().await.unwrap();
    let down = port.address();
    let connect = format!("{},{},{down}", server.connect_string(), follower.connect_string());
    let ended = doctor(&connect, &["--clock", "0"]).await;
    assert_failed(&ended, "port", "connection refused", "start the server");
    let all = ended.json();
    assert_eq!(findings(&all, "quorum", "warning")[0]["text"], "2 of 3 servers open sessions");
    assert_eq!(findings(&all, "port", "failure")[0]["server"], down.to_string());
    assert_eq!(
        findings(&all, "access", "ok").len() + findings(&all, "access", "warning").len(),
        1,
        "{ended:?}"
    );
}

fn assert_read_only(ended: &Ended) {
    assert_failed(ended, "server", "read-only: the server has lost its quorum", "start the other servers");
    assert_eq!(ended.code, 69);
}

#[tokio::test]
async fn a_read_only_embedded_server_is_reported() {
    let server = Server::start().await.unwrap();
    server.set_read_only(true);
    assert_read_only(&doctor(server.connect_string(), &[]).await);
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn a_read_only_real_server_is_reported() {
    let server = RealServer::start_read_only().await.unwrap();
    assert_read_only(&doctor(&server.address().to_string(), &[]).await);
}

#[tokio::test]
async fn a_partitioned_follower_opens_no_session() {
    let server = Server::start().await.unwrap();
    let follower = server.follower().start().await.unwrap();
    follower.cut_off();
    let ended = doctor(follower.connect_string(), &["--timeout", "1s"]).await;
    assert_failed(&ended, "session", "no session was opened", "cut off from its leader");
    assert_eq!(ended.code, 69);
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn an_ensemble_without_a_quorum_is_reported() {
    let ensemble = RealEnsemble::start().await.unwrap();
    let connect = ensemble.servers()[0].address().to_string();
    ensemble.servers()[1].stop();
    ensemble.servers()[2].stop();
    let check = async || doctor(&connect, &["--timeout", "1s"]).await;
    let knows = |ended: &Ended| ended.stdout.contains("serves no clients: the ensemble has no quorum");
    let ended = eventually(PATIENCE, check, knows).await.unwrap();
    assert_failed(&ended, "server", "no quorum", "a majority must run");
    assert_eq!(ended.code, 69);
}
