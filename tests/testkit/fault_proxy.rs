use crate::behind_proxy;
use docent::testkit::{ExpireError, FaultProxy, Operation, in_line};
use docent::{ConnectionState, CreateMode, ErrorKind, Mutex, Queue};
use docent_battery::{Backend, both_backends_in_real_time};
use docent_tests::{PATIENCE, connect, soon, until};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::time::timeout;

both_backends_in_real_time! {
    async fn a_reply_that_is_lost_leaves_its_write_applied(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = behind_proxy(&server).await;
        let lost = proxy.break_after(Operation::Create, &server.path("node"));
        assert!(!lost.has_fired());
        let error = soon(client.create("/node", "", CreateMode::Persistent)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
        soon(lost.fired()).await;
        assert!(connect(&server).await.exists("/node").await.unwrap().is_some());
    }

    async fn a_request_that_is_lost_is_not_applied(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = behind_proxy(&server).await;
        let lost = proxy.break_before(Operation::Create, server.root());
        let error = soon(client.create("/node", "", CreateMode::Persistent)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
        assert!(lost.has_fired());
        assert!(connect(&server).await.exists("/node").await.unwrap().is_none());
    }

    async fn a_swallowed_reply_leaves_the_link(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = behind_proxy(&server).await;
        let lost = proxy.swallow_reply(Operation::Set, &server.path("node"));
        client.create("/node", "", CreateMode::Persistent).await.unwrap();
        let hasty = client.with_operation_timeout(Duration::from_secs(1));
        soon(hasty.set("/node", "1", None)).await.unwrap_err();
        assert!(lost.has_fired());
        assert_eq!(&connect(&server).await.get("/node").await.unwrap().data[..], b"1");
    }

    async fn a_write_of_a_recipe_is_found_in_its_transaction(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = behind_proxy(&server).await;
        let jobs = Queue::<u8>::new(&client, "/jobs").unwrap();
        let lost = proxy.break_after(Operation::Create, &server.path("jobs/items"));
        soon(jobs.put(&7)).await.unwrap();
        assert!(lost.has_fired());
        assert_eq!(jobs.len().await.unwrap(), 1);
    }

    async fn a_link_that_is_cut_comes_back_when_it_is_healed(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = behind_proxy(&server).await;
        let lost = proxy.cut_after(Operation::Read, server.root());
        let reads = tokio::spawn({
            let client = client.clone();
            async move { client.exists("/node").await }
        });
        soon(lost.fired()).await;
        until(async || client.state().current().state == ConnectionState::Suspended).await;
        proxy.heal().await.unwrap();
        assert!(soon(reads).await.unwrap().unwrap().is_none());
        let session = client.session_id();
        proxy.cut().await;
        assert!(TcpStream::connect(proxy.address()).await.is_err());
        proxy.heal().await.unwrap();
        soon(client.exists("/node")).await.unwrap();
        assert_eq!(client.session_id(), session);
    }

    async fn a_black_hole_answers_nothing_until_it_is_healed(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = behind_proxy(&server).await;
        proxy.black_hole();
        let hasty = client.with_operation_timeout(Duration::from_secs(1));
        assert_eq!(soon(hasty.exists("/")).await.unwrap_err().kind(), ErrorKind::Timeout);
        proxy.heal().await.unwrap();
        soon(client.exists("/")).await.unwrap();
    }

    async fn a_delayed_link_takes_its_time(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = behind_proxy(&server).await;
        proxy.delay(Duration::from_millis(150));
        let start = tokio::time::Instant::now();
        soon(client.exists("/")).await.unwrap();
        assert!(start.elapsed() >= Duration::from_millis(300), "{:?}", start.elapsed());
    }

    async fn a_session_is_ended_and_its_line_moves_on(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = behind_proxy(&server).await;
        let other = connect(&server).await;
        let guard = Mutex::new(&client, "/lock").unwrap().acquire().await.unwrap();
        let waits = tokio::spawn(Mutex::new(&other, "/lock").unwrap().acquire());
        in_line(&other, "/lock", 2, PATIENCE).await.unwrap();
        proxy.expire(client.session_id().unwrap()).await.unwrap();
        let next = soon(waits).await.unwrap().unwrap();
        soon(guard.lost()).await;
        assert!(next.fence() > guard.fence());
        assert_eq!(in_line(&other, "/lock", 1, PATIENCE).await.unwrap().len(), 1);
        assert!(matches!(proxy.expire(7).await, Err(ExpireError::Unknown(7))));
    }
}

#[tokio::test]
async fn a_dropped_proxy_leaves_neither_port_nor_link_nor_task() {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let before = Handle::current().metrics().num_alive_tasks();
    let proxy = FaultProxy::start(server.local_addr().unwrap()).await.unwrap();
    let address = proxy.address();
    let mut client = TcpStream::connect(address).await.unwrap();
    let (mut served, _) = soon(server.accept()).await.unwrap();
    let waiting = proxy.swallow_reply(Operation::Any, "/");
    drop(proxy);
    let mut rest = Vec::new();
    let _ = soon(client.read_to_end(&mut rest)).await;
    let _ = soon(served.read_to_end(&mut rest)).await;
    assert!(rest.is_empty());
    until(async || Handle::current().metrics().num_alive_tasks() == before).await;
    assert!(TcpStream::connect(address).await.is_err());
    assert!(!waiting.has_fired());
}

#[tokio::test]
async fn a_link_whose_bytes_wait_is_read_no_further_at_some_point() {
    const PIECE: usize = 1 << 20;
    const MOST: usize = 96;
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = FaultProxy::start(server.local_addr().unwrap()).await.unwrap();
    proxy.delay(PATIENCE * 10);
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    // The data does not begin with the length of a frame, so the proxy forwards it unchanged.
    let piece = vec![0xff; PIECE];
    let mut written = 0;
    while timeout(Duration::from_secs(2), client.write_all(&piece)).await.is_ok_and(|sent| sent.is_ok()) {
        written += 1;
        assert!(written < MOST, "the proxy accepted {written} MiB");
    }
    assert!(written >= 12, "the proxy accepted only {written} MiB");
}
