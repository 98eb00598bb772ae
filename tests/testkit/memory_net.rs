use docent::server::Server;
use docent::testkit::{MemoryNet, eventually};
use docent::{ConnectionState, LostReason, Mutex};
use std::io::ErrorKind;
use std::time::Duration;
use tokio::time::Instant;

const HOUR: Duration = Duration::from_secs(60 * 60);

#[tokio::test(start_paused = true)]
async fn an_hour_passes_instantly_and_the_session_survives() {
    let (net, real) = (MemoryNet::new(), std::time::Instant::now());
    let server = Server::builder().start_on(net.clone()).await.unwrap();
    let client = net.client(server.connect_string()).connect().await.unwrap();
    let guard = Mutex::new(&client, "/lock").unwrap().acquire().await.unwrap();
    let start = Instant::now();
    tokio::time::sleep(HOUR).await;
    assert!(guard.is_held() && start.elapsed() >= HOUR);
    guard.verify().await.unwrap();
    assert!(real.elapsed() < Duration::from_secs(60), "{:?}", real.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_outage_that_is_too_long_ends_the_hold_on_virtual_time() {
    let net = MemoryNet::new();
    let server = Server::builder().start_on(net.clone()).await.unwrap();
    let client = net.client(server.connect_string()).connect().await.unwrap();
    let timeout = client.session_timeout().unwrap();
    let guard = Mutex::new(&client, "/lock").unwrap().acquire().await.unwrap();
    let start = Instant::now();
    server.stop_listening().await.unwrap();
    assert_eq!(guard.lost().await, LostReason::LeaseExpired);
    assert!(start.elapsed() <= timeout, "{:?} of {timeout:?}", start.elapsed());
    server.listen_again().await.unwrap();
    let state = async || client.state().current().state;
    eventually(HOUR, state, |state| *state == ConnectionState::Connected).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_moves_from_a_stopped_follower_to_its_leader() {
    let net = MemoryNet::new();
    let server = Server::builder().start_on(net.clone()).await.unwrap();
    let follower = server.follower().start_on(net.clone()).await.unwrap();
    assert_ne!(server.connect_string(), follower.connect_string());
    let both = format!("{},{}", server.connect_string(), follower.connect_string());
    let client = net.client(both).connect().await.unwrap();
    let session = client.session_id();
    drop(follower);
    client.exists("/").await.unwrap();
    assert_eq!(client.session_id(), session);
}

#[tokio::test(start_paused = true)]
async fn networks_know_nothing_of_each_other() {
    let (net, other) = (MemoryNet::new(), MemoryNet::new());
    let server = Server::builder().start_on(net.clone()).await.unwrap();
    let client = other.client(server.connect_string()).operation_timeout(Duration::from_secs(5));
    let client = client.build().unwrap();
    client.exists("/").await.unwrap_err();
    let last = client.health().last_error.unwrap();
    assert!(last.contains("refused"), "{last}");
    assert_eq!(format!("{net:?}"), format!("MemoryNet {{ listening: [{}] }}", server.connect_string()));
    assert_eq!(format!("{other:?}"), "MemoryNet { listening: [] }");
}

#[tokio::test(start_paused = true)]
async fn an_address_has_one_listener() {
    let net = MemoryNet::new();
    let server = Server::builder().port(2181).start_on(net.clone()).await.unwrap();
    let error = Server::builder().port(2181).start_on(net.clone()).await.unwrap_err();
    let docent::server::StartError::Bind { source, .. } = error else { panic!("{error}") };
    assert_eq!(source.kind(), ErrorKind::AddrInUse);
    server.stop().await;
    let _again = Server::builder().port(2181).start_on(net).await.unwrap();
}
