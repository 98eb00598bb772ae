//! A reply above the client's limit is an error of the call that requested it. A request above the servers'
//! limit is an error after it has cost two links.

use docent::node::Transaction;
use docent::{Client, ConnectionState, CreateMode, Error, ErrorKind, Mutex, Queue};
use docent_battery::{Backend, Rule, TestServer, both_backends};
use docent_proto::OpCode;
use docent_tests::{builder, soon};
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt};

const LIMIT: usize = 16 * 1024;

/// Connects a client whose limit is below the sizes of `/large` and of the data below `/many`.
async fn client() -> (TestServer, Client) {
    let server = Backend::Embedded.start().await;
    let client = builder(&server, server.connect_string()).max_reply(LIMIT).connect().await.unwrap();
    client.create("/large", vec![7; LIMIT * 2], CreateMode::Persistent).await.unwrap();
    client.create("/many", "", CreateMode::Persistent).await.unwrap();
    for number in 0..100 {
        let path = format!("/many/{number:0>200}");
        client.create(&path, "", CreateMode::Persistent).await.unwrap();
    }
    (server, client)
}

#[tokio::test]
async fn a_reply_above_the_limit_fails_its_call_and_the_link_lives() {
    let (_server, client) = client().await;
    let writes = client.set("/many", "x", None);
    let (large, many, written) =
        soon(async { tokio::join!(client.get("/large"), client.children("/many"), writes) }).await;
    written.unwrap();
    for error in [large.unwrap_err(), many.unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{error:?}");
        assert!(!error.may_have_applied());
        assert!(error.to_string().contains(&LIMIT.to_string()), "{error}");
    }
    assert_eq!(client.state().current().suspensions, 0);
}

#[tokio::test]
async fn streams_report_nodes_above_the_limit_and_resume_once_they_are_below() {
    let (_server, client) = client().await;
    let mut data = client.watch_data("/large").unwrap();
    let mut children = client.watch_children("/many").unwrap();
    assert_eq!(soon(data.next()).await.unwrap().unwrap_err().kind(), ErrorKind::TooLarge);
    assert_eq!(soon(children.next()).await.unwrap().unwrap_err().kind(), ErrorKind::TooLarge);
    client.set("/large", "small", None).await.unwrap();
    let shown = soon(data.next()).await.unwrap().unwrap().unwrap();
    assert_eq!(&shown.data[..], b"small");
    assert_eq!(client.state().current().suspensions, 0);
}

both_backends! {
    /// The servers' `jute.maxbuffer` limits requests, not replies.
    async fn a_listing_above_the_servers_limit_is_read_and_followed(backend: Backend) {
        const TAKEN: usize = 0xf_ffff;
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        client.create("/many", "", CreateMode::Persistent).await.unwrap();
        for hundred in 0..70 {
            let create = |all: Transaction, number| {
                all.create(&format!("/many/{hundred}-{number:0>200}"), "", CreateMode::Persistent)
            };
            (0..100).fold(client.transaction(), create).commit().await.unwrap();
        }
        let names = soon(client.children("/many")).await.unwrap().names;
        assert!(names.iter().map(String::len).sum::<usize>() > TAKEN);
        let mut listings = client.watch_children("/many").unwrap();
        assert_eq!(soon(listings.next()).await.unwrap().unwrap().unwrap().names.len(), 7_000);
        proxy.reset().await;
        // A create that is sent before the client notices the lost link would have an unknown outcome.
        let mut states = client.state();
        soon(states.wait_for(|status| status.suspensions == 1)).await.unwrap();
        client.create("/many/one-more", "", CreateMode::Persistent).await.unwrap();
        assert_eq!(soon(listings.next()).await.unwrap().unwrap().unwrap().names.len(), 7_001);
        assert_eq!(client.state().current().suspensions, 1);
    }

    async fn a_write_above_the_servers_limit_fails_after_the_second_lost_link(backend: Backend) {
        for write in Write::ALL {
            let server = backend.start().await;
            let client = unbounded(&server).await;
            let lost = client.state().current().suspensions;
            let error = soon(write.above_the_limit(&client)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TooLarge, "{write:?}: {error}");
            assert_eq!(error.may_have_applied(), !write.is_exact(), "{write:?}: {error}");
            assert!(!error.is_retryable(), "{write:?}: {error}");
            let text = error.to_string();
            for part in [&(LARGE / 1_000).to_string(), "jute.maxbuffer", "max_request", &MOST.to_string()] {
                assert!(text.contains(part), "{write:?}: {text:?} must contain {part:?}");
            }
            assert_eq!(client.state().current().suspensions, lost + 2, "{write:?}");
            // Smaller requests are sent as usual.
            let smaller = vec![7; LARGE / 4];
            soon(client.transaction().set("/node", smaller, None).commit_exactly()).await.unwrap();
        }
    }

    async fn requests_beside_one_above_the_servers_limit_are_not_failed(backend: Backend) {
        let server = backend.start().await;
        let client = unbounded(&server).await;
        let large = client.transaction().set("/node", vec![7; LARGE], None).commit_exactly();
        let beside = async {
            for number in 0.. {
                let path = format!("/small-{number}");
                let small = client.transaction().create(&path, vec![7; LARGE / 8], CreateMode::Persistent);
                small.commit_exactly().await.unwrap();
                if client.state().current().suspensions >= 2 {
                    return;
                }
            }
        };
        let (large, ()) = soon(async { tokio::join!(large, beside) }).await;
        assert_eq!(large.unwrap_err().kind(), ErrorKind::TooLarge);
    }

    async fn links_that_are_lost_by_chance_fail_no_large_request(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        client.create("/node", "", CreateMode::Persistent).await.unwrap();
        // The servers have accepted a request of this size before, so the links are lost for another reason.
        let large = || client.transaction().set("/node", vec![7; LIMIT * 8], None);
        soon(large().commit_exactly()).await.unwrap();
        for _ in 0..3 {
            proxy.add(Rule::on(OpCode::Multi).path(|path| path.ends_with("/node")).reset_before());
        }
        soon(large().commit_exactly()).await.unwrap();
        assert_eq!(client.get("/node").await.unwrap().stat.version, 2);
    }
}

/// A size above the servers' default limit and below the client's.
const LARGE: usize = 1_500_000;

/// The client's limit.
const MOST: usize = 4 << 20;

/// Connects a client with a higher limit than the servers', and creates a node.
async fn unbounded(server: &TestServer) -> Client {
    let client = builder(server, server.connect_string()).max_request(MOST).connect().await.unwrap();
    client.create("/node", "", CreateMode::Persistent).await.unwrap();
    // Creates the session's first marker, and everything else that is created on first use.
    soon(client.transaction().check("/node", None).commit_exactly()).await.unwrap();
    client
}

/// A kind of write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Write {
    Create,
    Set,
    SetVersion,
    Commit,
    CommitExactly,
    CommitHeld,
    Ephemeral,
    Put,
}

impl Write {
    const ALL: [Self; 8] = [
        Self::Create,
        Self::Set,
        Self::SetVersion,
        Self::Commit,
        Self::CommitExactly,
        Self::CommitHeld,
        Self::Ephemeral,
        Self::Put,
    ];

    /// True for a write whose outcome the client resolves.
    fn is_exact(self) -> bool {
        matches!(self, Self::CommitExactly | Self::Ephemeral | Self::Put)
    }

    /// Writes more than the servers accept. A write that is not exact has an unknown outcome the first time,
    /// and is sent a second time.
    async fn above_the_limit(self, client: &Client) -> Result<(), Error> {
        let (client, data) = (client.clone(), vec![7; LARGE]);
        let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
        let write = || -> BoxFuture<'_, Result<(), Error>> {
            let (data, set) = (data.clone(), client.transaction().set("/node", data.clone(), None));
            match self {
                Self::Create => {
                    client.create("/new", data, CreateMode::Persistent).map(|done| done.map(drop)).boxed()
                }
                Self::Set => client.set("/node", data, None).map(|done| done.map(drop)).boxed(),
                Self::SetVersion => client.set("/node", data, 0).map(|done| done.map(drop)).boxed(),
                Self::Commit => set.commit().map(|done| done.map(drop)).boxed(),
                Self::CommitExactly => set.commit_exactly().map(|done| done.map(drop)).boxed(),
                Self::CommitHeld => {
                    guard.transaction().set("/node", data, None).commit().map(|done| done.map(drop)).boxed()
                }
                Self::Ephemeral => {
                    client.create("/new", data, CreateMode::Ephemeral).map(|done| done.map(drop)).boxed()
                }
                Self::Put => {
                    let queue = Queue::<Vec<u8>>::new(&client, "/queue").unwrap();
                    // The JSON text is larger than the limit.
                    async move { queue.put(&vec![7; LARGE / 2]).await.map_err(core) }.boxed()
                }
            }
        };
        match write().await {
            Err(error) if error.kind() == ErrorKind::OutcomeUnknown => {
                assert!(!self.is_exact(), "{self:?}: {error}");
                soon(client.state().reached(ConnectionState::Connected)).await;
                write().await
            }
            done => done,
        }
    }
}

fn core(error: docent::queue::PutError) -> Error {
    match error {
        docent::queue::PutError::Core(error) => error,
        error => panic!("{error}"),
    }
}
