//! Claims of one node by several clients, after some of the nodes were deleted by hand: the newest claim
//! holds.

use crate::jobs::QUEUE;
use docent::node::{Acl, Permissions};
use docent::queue::{PutOptions, QueueBuilder};
use docent::recipe::{ClaimRequest, ClaimResult, Hold, claim_all, hand_out};
use docent::transport::{Dialled, Io, ServerAddress, TcpTransport, Transport};
use docent::{Client, ConnectionState, CreateMode, ErrorKind, Queue};
use docent_battery::{Backend, Rule, TestServer, both_backends_in_real_time};
use docent_proto::OpCode;
use docent_tests::{KIND, Stalled, builder, child_count, connect, soon, until};
use futures_util::StreamExt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const CLAIM: &str = "/claim";
const ITEM: &str = "/item";

async fn claim(client: &Client, handed_out: bool) -> Hold {
    let wanted =
        ClaimRequest { claim: CLAIM.to_owned(), node: ITEM.to_owned(), handed_out, beside_curator: false };
    let claimed = soon(claim_all(client, &[wanted], &KIND, "take")).await.unwrap();
    let ClaimResult::All(mut claims) = claimed else { panic!("{claimed:?}") };
    claims.remove(0).0
}

async fn create(client: &Client, paths: &[&str]) {
    for path in paths {
        client.create(path, "", CreateMode::Persistent).await.unwrap();
    }
}

async fn children(client: &Client, path: &str) -> Vec<String> {
    let mut names = client.children(path).await.unwrap().names;
    names.sort();
    names
}

fn jobs(client: &Client) -> QueueBuilder<u64> {
    Queue::builder(client, QUEUE).redelivery_delay(Duration::ZERO, Duration::ZERO)
}

/// The path of the queue's first item.
async fn first_item(client: &Client) -> String {
    let items = format!("{QUEUE}/items");
    format!("{items}/{}", children(client, &items).await[0])
}

fn is_of_proof(path: &str) -> bool {
    path.ends_with("-claim")
}

both_backends_in_real_time! {
    async fn a_hand_out_whose_reply_was_lost_takes_nothing_from_the_next_claim(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = soon(builder(&server, proxy.connect_string()).connect()).await.unwrap();
        create(&other, &[ITEM]).await;
        let ahead = claim(&client, false).await;
        let cut = proxy.add(Rule::on(OpCode::Multi).path(is_of_proof).cut_after());
        let handing_out = tokio::spawn(async move {
            soon(hand_out(&client, &[&ahead], "take")).await.unwrap();
            (ahead, client)
        });
        soon(cut.fired()).await;
        other.delete(CLAIM, None).await.unwrap();
        let next = claim(&other, true).await;
        proxy.heal().await.unwrap();
        let (earlier, _client) = soon(handing_out).await.unwrap();
        assert!(!earlier.is_held());
        soon(next.verify()).await.unwrap();
        soon(earlier.release()).await.unwrap_err();
        soon(next.verify()).await.unwrap();
    }

    async fn a_claim_that_an_earlier_holder_deletes_before_it_is_evicted_is_not_held(backend: Backend) {
        let server = backend.start().await;
        let (other, earlier) = (connect(&server).await, connect(&server).await);
        create(&other, &[ITEM]).await;
        // The next client has its claim and reads or deletes the proof of the first.
        for evicting in [OpCode::Sync, OpCode::Delete] {
            let proxy = server.proxy().await;
            let client = soon(builder(&server, proxy.connect_string()).connect()).await.unwrap();
            let first = claim(&earlier, true).await;
            other.delete(CLAIM, None).await.unwrap();
            let held = proxy.add(Rule::on(evicting).path(is_of_proof).hold());
            let claiming = tokio::spawn(async move { (claim(&client, true).await, client) });
            soon(held.fired()).await;
            assert_eq!(child_count(&other, ITEM).await, 2);
            drop(first);
            until(async || child_count(&other, ITEM).await == 1).await;
            assert!(other.exists(CLAIM).await.unwrap().is_none(), "no claim may exist at this path");
            proxy.heal().await.unwrap();
            let (next, _client) = soon(claiming).await.unwrap();
            assert!(!next.is_held(), "{evicting:?}");
            soon(next.release()).await.unwrap_err();
            until(async || child_count(&other, ITEM).await == 0).await;
        }
    }

    async fn an_item_whose_claim_was_deleted_by_hand_is_moved_and_its_holder_loses_it(backend: Backend) {
        let server = backend.start().await;
        let (holder, other) = (connect(&server).await, connect(&server).await);
        let (rival, own) = (jobs(&holder).build().unwrap(), jobs(&other).build().unwrap());
        soon(own.put(&1)).await.unwrap();
        let delivery = soon(rival.take()).await.unwrap();
        other.delete(&delivery.path(), None).await.unwrap();
        let name = delivery.name().to_owned();
        assert!(soon(own.reschedule(&name, PutOptions::new().priority(5))).await.unwrap());
        soon(delivery.ack()).await.unwrap_err();
        let moved = soon(own.take()).await.unwrap();
        assert_eq!((*moved.item(), moved.deliveries()), (1, Some(2)), "the count must be kept");
    }

    async fn a_hand_out_of_many_claims_checks_them_in_a_few_requests(backend: Backend) {
        const CLAIMS: usize = 70;
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = soon(builder(&server, proxy.connect_string()).connect()).await.unwrap();
        create(&other, &["/claims", "/items"]).await;
        for index in 0..CLAIMS {
            create(&other, &[&nth(index).node]).await;
        }
        let wanted: Vec<_> = (0..CLAIMS).map(|index| ClaimRequest { handed_out: false, ..nth(index) }).collect();
        let claimed = soon(claim_all(&client, &wanted, &KIND, "take")).await.unwrap();
        let ClaimResult::All(claims) = claimed else { panic!("{claimed:?}") };
        let claims: Vec<_> = claims.into_iter().map(|(claim, _)| claim).collect();
        let before = proxy.trace().len();
        soon(hand_out(&client, &claims.iter().collect::<Vec<_>>(), "take")).await.unwrap();
        let trace = proxy.trace();
        let requests = |op| trace[before..].iter().filter(|frame| frame.is_request(op)).count();
        let [writes, reads] = [OpCode::Multi, OpCode::MultiRead].map(requests);
        assert_eq!((writes, reads), (1, 3));
        assert_eq!([OpCode::GetChildren2, OpCode::Sync].map(requests), [0, 0]);
        assert!(claims.iter().all(|claim| claim.is_held()));
    }

    async fn a_late_hand_out_does_not_affect_the_next_consumers_delivery(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = soon(builder(&server, proxy.connect_string()).connect()).await.unwrap();
        let (rival, own) = (jobs(&client).prefetch(2).build().unwrap(), jobs(&other).build().unwrap());
        soon(own.put_all(&[1, 2])).await.unwrap();
        let mut deliveries = rival.deliveries();
        soon(deliveries.next()).await.unwrap().unwrap().ack().await.unwrap();
        let cut = proxy.add(Rule::on(OpCode::Multi).path(is_of_proof).cut_after());
        let taking = tokio::spawn(async move { deliveries.next().await });
        soon(cut.fired()).await;
        let claims = format!("{QUEUE}/claims");
        let of_the_second = &children(&other, &claims).await[0];
        other.delete(&format!("{claims}/{of_the_second}"), None).await.unwrap();
        let delivery = soon(own.take()).await.unwrap();
        proxy.heal().await.unwrap();
        // When the consumer has the next item, it has resolved the outcome of its hand-out.
        soon(own.put(&3)).await.unwrap();
        let third = soon(taking).await.unwrap().unwrap().unwrap();
        assert_eq!((*delivery.item(), *third.item()), (2, 3));
        soon(delivery.ack()).await.unwrap();
        soon(third.ack()).await.unwrap();
    }

    async fn a_stream_whose_session_ends_before_a_hand_out_is_sent_continues(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = soon(builder(&server, proxy.connect_string()).connect()).await.unwrap();
        let queue = jobs(&client).prefetch(2).build().unwrap();
        soon(queue.put_all(&[1, 2])).await.unwrap();
        let mut deliveries = queue.deliveries();
        soon(soon(deliveries.next()).await.unwrap().unwrap().ack()).await.unwrap();
        proxy.cut().await;
        soon(client.state().reached(ConnectionState::Suspended)).await;
        // The second item is claimed, and its hand-out waits for a link.
        let mut next = std::pin::pin!(deliveries.next());
        assert!(futures_util::poll!(next.as_mut()).is_pending());
        server.expire(client.session_id().unwrap()).await.unwrap();
        proxy.heal().await.unwrap();
        let delivery = soon(next).await.unwrap().unwrap();
        assert_eq!((*delivery.item(), delivery.deliveries()), (2, Some(1)));
        soon(delivery.ack()).await.unwrap();
    }

    async fn a_claim_made_ahead_by_another_process_is_not_handed_out_by_a_stalled_process(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        create(&other, &[ITEM]).await;
        let connecting = builder(&server, server.connect_string());
        let first = async move |client: &Client| (client.clone(), claim(client, false).await);
        let stalled = Stalled::after(connecting, first, async move |(client, ahead)| {
            hand_out(&client, &[&ahead], "take").await.unwrap();
            ahead.is_held()
        }).await;
        other.delete(CLAIM, None).await.unwrap();
        let next = claim(&other, false).await;
        assert!(!stalled.resume().await, "the fence would be lower than that of a later delivery");
        // The next client lost its claim because of that hand-out, and claims again.
        soon(hand_out(&other, &[&next], "take")).await.unwrap();
        assert!(!next.is_held());
        drop(next);
        until(async || other.exists(CLAIM).await.unwrap().is_none()).await;
        soon(claim(&other, true).await.verify()).await.unwrap();
    }

    async fn a_claim_whose_proof_cannot_be_deleted_frees_its_item(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let queue = jobs(&client).build().unwrap();
        soon(queue.put(&1)).await.unwrap();
        let item = first_item(&other).await;
        let no_delete = Permissions::READ | Permissions::CREATE | Permissions::WRITE | Permissions::ADMIN;
        other.set_acl(&item, [Acl::new(no_delete, "world", "anyone")], None).await.unwrap();
        let delivery = soon(queue.take()).await.unwrap();
        soon(delivery.ack()).await.unwrap_err();
        let claims = format!("{QUEUE}/claims");
        until(async || child_count(&other, &claims).await == 0).await;
        let refused = soon(jobs(&other).build().unwrap().take()).await.unwrap_err();
        assert!(refused.to_string().contains(&item), "{refused}");
    }

    async fn a_consumer_that_may_not_hand_items_out_fails_immediately(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = soon(builder(&server, proxy.connect_string()).connect()).await.unwrap();
        let (rival, own) = (jobs(&client).build().unwrap(), jobs(&other).build().unwrap());
        soon(own.put_all(&[1, 2, 3])).await.unwrap();
        let no_create = Permissions::READ | Permissions::DELETE | Permissions::WRITE | Permissions::ADMIN;
        let items = format!("{QUEUE}/items");
        for name in children(&other, &items).await {
            let acl = [Acl::new(no_create, "world", "anyone")];
            other.set_acl(&format!("{items}/{name}"), acl, None).await.unwrap();
        }
        // The first take claims and hands out in one write, later takes use separate writes.
        for items in [1, 1, 3] {
            let before = proxy.trace().len();
            let error = soon(rival.take_batch(items)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NoAuth);
            let trace = proxy.trace();
            let writes = trace[before..].iter().filter(|frame| frame.is_request(OpCode::Multi)).count();
            assert!(writes <= 12, "{writes} writes for {items} items");
        }
    }

    async fn an_item_with_a_foreign_child_does_not_block_the_next(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let queue = jobs(&client).max_deliveries(1).build().unwrap();
        soon(queue.put_all(&[1, 2])).await.unwrap();
        let child = format!("{}/child", first_item(&other).await);
        create(&other, &[&child]).await;
        let delivery = soon(queue.take()).await.unwrap();
        assert_eq!(*delivery.item(), 2);
        soon(delivery.ack()).await.unwrap();
    }

    async fn a_claim_whose_marker_was_deleted_does_not_stay(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = soon(builder(&server, proxy.connect_string()).connect()).await.unwrap();
        create(&other, &[ITEM]).await;
        // Creates the session's marker.
        client.create("/marked", "", CreateMode::Ephemeral).await.unwrap();
        let cut = proxy.add(Rule::on(OpCode::Multi).path(is_of_proof).cut_after());
        let claiming = {
            let client = client.clone();
            let wanted = ClaimRequest { claim: CLAIM.to_owned(), node: ITEM.to_owned(), handed_out: true, beside_curator: false };
            tokio::spawn(async move { claim_all(&client, &[wanted], &KIND, "take").await })
        };
        soon(cut.fired()).await;
        for session in children(&other, "/_docent").await {
            let folder = format!("/_docent/{session}");
            for marker in children(&other, &folder).await {
                other.delete(&format!("{folder}/{marker}"), None).await.unwrap();
            }
        }
        proxy.heal().await.unwrap();
        soon(claiming).await.unwrap().unwrap_err();
        until(async || other.exists(CLAIM).await.unwrap().is_none() && children(&other, ITEM).await.is_empty()).await;
    }

    async fn a_transaction_that_was_prepared_before_the_hand_out_is_applied_in_whole(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        create(&client, &[ITEM, "/a", "/b"]).await;
        let ahead = claim(&client, false).await;
        let writes = ["/a", "/b"].iter().fold(ahead.transaction(), |writes, path| writes.set(path, "new", None));
        let more = ahead.transaction().set("/a", "newer", None);
        soon(hand_out(&client, &[&ahead], "take")).await.unwrap();
        soon(more.commit()).await.unwrap();
        soon(Hold::end_all("ack", vec![ahead], &[ITEM.to_owned()], writes)).await.unwrap();
        for path in ["/a", "/b"] {
            assert_eq!(client.get(path).await.unwrap().data, "new", "{path}");
        }
    }
}

/// Number of claims in one write that is too long to be sent together with the reads behind it.
const MANY: usize = 150;

fn nth(index: usize) -> ClaimRequest {
    let claim = format!("/claims/item-{index:010}");
    ClaimRequest { claim, node: format!("/items/item-{index:010}"), handed_out: true, beside_curator: false }
}

#[tokio::test]
async fn reads_that_were_answered_before_their_claims_existed_do_not_count() {
    let server = Backend::Embedded.start().await;
    let follower = server.follower(|follower| follower.sync_limit(Duration::from_secs(60))).await;
    let other = connect(&server).await;
    create(&other, &["/claims", "/items", "/effect"]).await;
    for index in 0..MANY {
        create(&other, &[&nth(index).node]).await;
    }
    let stalled = stalled_with_first_claim(&server).await;
    other.delete(&nth(0).claim, None).await.unwrap();

    let cutting = Cutting::default();
    let connecting = builder(&server, server.connect_string()).transport(cutting.clone());
    let client = soon(connecting.connect()).await.unwrap();
    // Creates the session's marker.
    client.create("/marked", "", CreateMode::Ephemeral).await.unwrap();
    follower.set_lag(Duration::from_secs(1));
    cutting.moved_to.set(follower.connect_string().parse().unwrap()).unwrap();
    cutting.is_armed.store(true, Ordering::SeqCst);
    let wanted: Vec<_> = (0..MANY).map(nth).collect();
    let claimed = soon(claim_all(&client, &wanted, &KIND, "take")).await.unwrap();
    let ClaimResult::All(claims) = claimed else { panic!("{claimed:?}") };
    let counts = claims.iter().map(|(_, node)| node.as_ref().unwrap().stat.cversion);
    assert_eq!(counts.collect::<Vec<_>>(), [vec![2], vec![1; MANY - 1]].concat());

    stalled.resume().await.unwrap_err();
    soon(claims[0].0.transaction().set("/effect", "new", None).commit()).await.unwrap();
    assert_eq!(other.get("/effect").await.unwrap().data, "new");
}

/// A process that stalls while it has the first claim, and writes when it resumes.
async fn stalled_with_first_claim(server: &TestServer) -> Stalled<Result<(), docent::Error>> {
    let connecting = builder(server, server.connect_string()).session_timeout(Duration::from_secs(30));
    let claim = async move |client: &Client| {
        let claimed = claim_all(client, &[nth(0)], &KIND, "take").await.unwrap();
        let ClaimResult::All(claims) = claimed else { panic!("{claimed:?}") };
        claims
    };
    let write = |claims: Vec<(Hold, _)>| async move {
        claims[0].0.transaction().set("/effect", "old", None).commit().await.map(drop)
    };
    Stalled::after(connecting, claim, write).await
}

/// A transport that ends the link behind the first long write and then connects to another server.
#[derive(Debug, Clone, Default)]
struct Cutting {
    is_armed: Arc<AtomicBool>,
    moved_to: Arc<OnceLock<SocketAddr>>,
}

/// Shortest write that ends the link.
const LONG: usize = 32 << 10;

impl Transport for Cutting {
    fn resolve<'a>(&'a self, server: &'a ServerAddress) -> Dialled<'a, Vec<SocketAddr>> {
        TcpTransport.resolve(server)
    }

    fn dial<'a>(&'a self, server: &'a ServerAddress, address: SocketAddr) -> Dialled<'a, Box<dyn Io>> {
        Box::pin(async move {
            let address = self.moved_to.get().copied().unwrap_or(address);
            let io = TcpTransport.dial(server, address).await?;
            let link = CutLink { io, is_armed: Arc::clone(&self.is_armed), is_cut: false };
            Ok(Box::new(link) as Box<dyn Io>)
        })
    }
}

struct CutLink {
    io: Box<dyn Io>,
    is_armed: Arc<AtomicBool>,
    is_cut: bool,
}

impl AsyncRead for CutLink {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        match self.is_cut {
            true => Poll::Ready(Ok(())),
            false => Pin::new(&mut self.io).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for CutLink {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(cx, buf);
        if buf.len() > LONG && matches!(written, Poll::Ready(Ok(count)) if count == buf.len()) {
            self.is_cut = self.is_armed.swap(false, Ordering::SeqCst);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
