//! The scheme for errors (decision 13): a row for each case of each public error, and the same behaviour of
//! all streams.

use crate::children_cache::all_but_read;
use crate::{builder, connect};
use docent::cache::{ChildrenCache, NodeCache};
use docent::config::{Counter, CounterError, NodeError, PublishError, RejectionReason, SubscribeError};
use docent::discovery::PickError;
use docent::guard::{Lost, LostReason};
use docent::locks::{AcquireError, BarrierError};
use docent::node::{Acl, DeleteAllError, Permissions};
use docent::queue::{AckError, CodecError, PeekError, PutError};
use docent::recipe::WaitError;
use docent::server::{KeepError, Server, StartError};
use docent::{Config, ConfigTree, CreateMode, Error, ErrorKind, Membership, Registry};
use docent_battery::{Backend, Rule, TestServer, both_backends};
use docent_proto::OpCode;
use docent_tests::soon;
use futures_util::{Stream, StreamExt};
use std::time::Duration;

/// Returns whether an error is retryable, whether it may have been applied, its path, and its text.
macro_rules! row {
    ($error:expr, $retryable:literal, $applied:literal, $path:expr, $text:expr) => {{
        let error = $error;
        let text = error.to_string();
        assert_eq!((error.is_retryable(), error.may_have_applied()), ($retryable, $applied), "{text}");
        assert_eq!(error.path(), $path, "{text}");
        assert_eq!(text, $text);
        let first = text.chars().next().unwrap();
        assert!(first.is_lowercase() && !text.ends_with('.'), "{text}");
    }};
}

/// Rows of an error that contains a core error and returns the core error's answers.
macro_rules! forwards {
    ($kind:ident, $unknown:expr) => {{
        let unknown: Error = $unknown.clone();
        let large = Error::too_large("set", 5, 4).at("/a");
        row!(
            $kind::from(large),
            false,
            false,
            Some("/a"),
            "set \"/a\": request or reply is too large: 5 bytes, the limit is 4"
        );
        let text = unknown.to_string();
        row!($kind::from(unknown), false, true, Some("/a"), text);
    }};
}

fn all_but_create() -> Acl {
    let permissions = Permissions::READ | Permissions::WRITE | Permissions::DELETE | Permissions::ADMIN;
    Acl::new(permissions, "world", "anyone")
}

/// Returns the error of a server whose state file cannot contain its state.
async fn not_kept() -> KeepError {
    match Server::builder().keep("/dev/null").start().await.unwrap_err() {
        StartError::Keep(error) => error,
        other => panic!("{other}"),
    }
}

/// Sends a set whose reply is lost.
async fn unknown(server: &TestServer) -> Error {
    let proxy = server.proxy().await;
    let client = builder(server, proxy.connect_string()).connect().await.unwrap();
    client.create("/a", "0", CreateMode::Persistent).await.unwrap();
    proxy.add(Rule::on(OpCode::SetData).reset_after());
    soon(client.set("/a", "1", None)).await.unwrap_err()
}

#[cfg(feature = "tower")]
fn rows_of_calls() {
    use docent::discovery::CallError;
    let (service, id) = (|| "orders".to_owned(), || "host-7".to_owned());
    let none = CallError::<&str>::NoInstance { service: service() };
    row!(none, true, false, None, "call: service \"orders\" has no available instance");
    let cause: std::sync::Arc<dyn std::error::Error + Send + Sync> =
        std::sync::Arc::from(Box::from("refused"));
    let unreachable = CallError::<&str>::Unreachable { service: service(), id: id(), cause };
    row!(
        unreachable,
        true,
        false,
        None,
        "call: cannot reach instance \"host-7\" of service \"orders\": refused"
    );
    let late = CallError::<&str>::TimedOut { service: service(), id: id(), timeout: Duration::from_secs(2) };
    row!(late, false, true, None, "call: instance \"host-7\" of service \"orders\" did not answer within 2s");
    let failed = |unsent| CallError::Failed { service: service(), id: id(), error: "reset", unsent };
    row!(failed(false), false, true, None, "call: instance \"host-7\" of service \"orders\" failed: reset");
    row!(failed(true), true, false, None, "call: instance \"host-7\" of service \"orders\" failed: reset");
}

both_backends! {
    async fn every_error_reports_whether_it_is_retryable_and_may_have_applied(backend: Backend) {
        let server = backend.start().await;
        let unknown = unknown(&server).await;
        row!(unknown.clone(), false, true, Some("/a"), "set \"/a\": sent, but no reply arrived; the change may have been applied");
        forwards!(AcquireError, unknown);
        forwards!(BarrierError, unknown);
        forwards!(PublishError, unknown);
        forwards!(SubscribeError, unknown);
        forwards!(CounterError, unknown);
        forwards!(NodeError, unknown);
        forwards!(WaitError, unknown);

        let lost = Lost { reason: LostReason::LeaseExpired };
        let why = "the guard is lost: no write was acknowledged before the lease ran out";
        row!(lost, false, false, None, why);
        row!(AcquireError::Lost(lost), false, false, None, format!("acquire: cannot re-enter the owner's hold: {why}"));
        row!(AcquireError::WouldDeadlock, false, false, None, "acquire: the owner already holds this lock in another mode, or waits for it, and would wait for itself");
        row!(WaitError::Gone, true, false, None, "wait: the ticket's node was deleted or its session ended");
        row!(PublishError::Conflict, false, false, None, "publish: another client published or deleted the value meanwhile");
        row!(PublishError::NoSuchRevision, false, false, None, "publish: the history does not contain that revision");
        let exists = NodeError::Exists { path: "/a".to_owned() };
        row!(exists, false, false, Some("/a"), "create \"/a\": the node already exists");
        row!(SubscribeError::Missing { path: "/c".to_owned() }, true, false, Some("/c"), "config \"/c\": no value is published at the path");
        let none = PickError::NoInstance { service: "orders".to_owned() };
        row!(none, true, false, None, "pick: service \"orders\" has no available instance");
        #[cfg(feature = "tower")]
        rows_of_calls();
        let refused: DeleteAllError = soon(connect(&server).await.delete_all("a")).await.unwrap_err();
        let text = format!("delete_all: only 0 nodes were deleted: {}", refused.error());
        row!(refused, false, false, None, text);
        forwards!(PutError, unknown);
        forwards!(AckError, unknown);
        forwards!(PeekError, unknown);
        let full = || PutError::Full { length: 3, capacity: 2 };
        let full_text = "put: the queue has no room: 3 items of at most 2";
        row!(full(), true, false, None, full_text);
        row!(PutError::Encode(CodecError::new("no")), false, false, None, "put: cannot encode the item: no");
        let unreadable = PutError::Unreadable(CodecError::new("no"));
        row!(unreadable, false, false, None, "put: cannot decode the item after encoding it: no");
        row!(PutError::SequenceExhausted, false, false, None, "put: the sequence numbers of the queue's items are nearly used up");
        row!(AckError::Lost(lost), false, false, None, format!("ack: {why}"));
        row!(AckError::Put(full()), true, false, None, format!("ack: cannot put the item into the other queue: {full_text}"));
        let undecodable = PeekError::Undecodable { item: "item-0000000007".to_owned(), detail: "no".to_owned() };
        row!(undecodable, false, false, None, "peek: cannot decode item \"item-0000000007\": no");
        row!(StartError::Stopped, false, false, None, "start: the server has stopped");
        row!(StartError::from(not_kept().await), false, false, None, "start: keep \"/dev/null\": the path is not a regular file");
        row!(not_kept().await, false, false, None, "keep \"/dev/null\": the path is not a regular file");
    }

    async fn a_refusal_names_the_refused_operation(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        client.create("/c", "x", CreateMode::Persistent).await.unwrap();
        let config = Config::<u32>::new(&client, "/c").unwrap();
        let unreadable = soon(config.update(|now| now)).await.unwrap_err();
        assert!(matches!(&unreadable, PublishError::Unreadable(fault) if fault.reason() == RejectionReason::Codec));
        assert!(unreadable.to_string().starts_with("publish: cannot read the current value: "), "{unreadable}");
        let refused = soon(config.subscribe()).await.unwrap_err();
        assert!(refused.to_string().starts_with("config \"/c\": the published value was rejected: "), "{refused}");
        assert!(refused.is_retryable() && !refused.may_have_applied() && refused.path() == Some("/c"));
        let strict = Config::<u32>::builder(&client, "/d").validate(|_| Err("never")).build().unwrap();
        let refused = soon(strict.publish(&1)).await.unwrap_err();
        assert!(refused.to_string().starts_with("publish: rejected before it was published: "), "{refused}");
        assert!(!refused.is_retryable() && !refused.may_have_applied() && refused.path().is_none());
        let counter = Counter::<i64>::new(&client, "/c").unwrap();
        row!(soon(counter.get()).await.unwrap_err(), false, false, Some("/c"), "count \"/c\": the node holds 1 bytes, but a number takes 8");
        let full = Counter::<i64>::new(&client, "/f").unwrap();
        soon(full.set(i64::MAX)).await.unwrap();
        row!(soon(full.increment()).await.unwrap_err(), false, false, Some("/f"), "count \"/f\": the result would be out of range");
    }

    async fn the_error_of_a_lock_that_was_not_acquired_names_path_and_cause(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, builder(&server, server.connect_string()));
        let other = other.identity("worker 7").connect().await.unwrap();
        let (moment, mutex) = (Duration::from_millis(50), docent::Mutex::new(&client, "/l").unwrap());
        let guard = soon(docent::Mutex::new(&other, "/l").unwrap().acquire()).await.unwrap();
        row!(soon(mutex.try_acquire()).await.unwrap_err(), true, false, Some("/l"), "acquire \"/l\": not free: held by worker 7, 1 ahead");
        let late = soon(mutex.acquire_timeout(moment)).await.unwrap_err();
        assert!(matches!(&late, AcquireError::TimedOut(missed) if missed.servers_reachable()), "{late}");
        assert!(late.to_string().starts_with("acquire \"/l\": not acquired in 50ms: "), "{late}");
        assert_eq!((late.is_retryable(), late.may_have_applied(), late.path()), (true, false, Some("/l")));
        soon(guard.release()).await.unwrap();
    }

    async fn errors_name_what_the_user_called(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let text = |error: Error| error.to_string();
        let bad_path = |error: Error, first: &str| assert!(text(error.clone()).starts_with(&format!("{first}: path ")), "{error}");
        bad_path(docent::Mutex::new(&client, "l").unwrap_err(), "mutex");
        bad_path(docent::RwLock::new(&client, "l").unwrap_err(), "rw_lock");
        bad_path(docent::Semaphore::new(&client, "l", 1).unwrap_err(), "semaphore");
        bad_path(docent::Election::builder(&client, "e").id("a").build().unwrap_err(), "election");
        client.create("/closed", "", CreateMode::Persistent).await.unwrap();
        soon(client.set_acl("/closed", [all_but_create()], None)).await.unwrap();
        let refused = soon(docent::Mutex::new(&client, "/closed").unwrap().acquire()).await.unwrap_err();
        assert_eq!(refused.to_string(), "acquire \"/closed\": permission denied: needs CREATE");
        let election = docent::Election::builder(&client, "/closed").id("a").build().unwrap();
        let refused = soon(election.campaign()).await.unwrap_err();
        assert_eq!(refused.to_string(), "campaign \"/closed\": permission denied: needs CREATE");
        let group = Membership::new(&client, "/closed").unwrap();
        let refused = soon(group.join("a", "data")).await.unwrap_err().to_string();
        assert_eq!(refused, "join \"/closed/a\": permission denied: needs CREATE on the parent");
    }

    async fn a_barrier_that_times_out_does_not_mention_locks(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let moment = Duration::from_millis(50);
        let barrier = docent::Barrier::new(&client, "/b").unwrap();
        soon(barrier.set()).await.unwrap();
        let late = soon(barrier.wait_timeout(moment)).await.unwrap_err();
        row!(late, true, false, Some("/b"), "wait \"/b\": timed out");
        let pair = docent::DoubleBarrier::new(&client, "/d", 2).unwrap();
        let late = soon(pair.enter_timeout(moment)).await.unwrap_err();
        row!(late, true, false, Some("/d"), "enter \"/d\": timed out");
    }

    async fn a_stream_reports_an_error_once_continues_and_ends_only_on_close(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        for path in ["/s/web", "/t/key", "/n", "/g", "/c"] {
            client.create(path, "1", CreateMode::Persistent).await.unwrap();
        }
        let registry = Registry::new(&other, "/s").unwrap();
        let (children, node) = (ChildrenCache::new(&other, "/g").unwrap(), NodeCache::new(&other, "/n").unwrap());
        let view = soon(registry.service("web")).await.unwrap();
        let members = soon(Membership::new(&other, "/g").unwrap().members()).await.unwrap();
        let config = soon(Config::<u32>::new(&other, "/c").unwrap().subscribe()).await.unwrap();
        let tree = soon(ConfigTree::<u32>::new(&other, "/t").unwrap().subscribe()).await.unwrap();
        let (states, names) = (other.watch_data("/n").unwrap(), registry.watch_names().unwrap());
        let open: [(&str, &str, Errors<'_>); 8] = [
            ("watch_data", "/n", errors(states)),
            ("NodeCache", "/n", errors(node.changes())),
            ("ChildrenCache", "/g", errors(children.changes())),
            ("ServiceNames", "/s", errors(names)),
            ("ServiceChanges", "/s/web", errors(view.changes())),
            ("MemberChanges", "/g", errors(members.changes())),
            ("Subscription", "/c", errors(config)),
            ("TreeSubscription", "/t", errors(tree)),
        ];
        let mut open = open;
        let paths = ["/n", "/g", "/s", "/s/web", "/c", "/t"];
        for path in paths {
            soon(client.set_acl(path, [all_but_read()], None)).await.unwrap();
        }
        // A new session reads everything again.
        server.expire(other.session_id().unwrap()).await.unwrap();
        for (stream, path, errors) in &mut open {
            let error = soon(errors.next()).await.unwrap();
            assert_eq!((error.kind(), error.path()), (ErrorKind::NoAuth, Some(*path)), "{stream}");
        }
        for path in paths {
            soon(client.set_acl(path, [Acl::open_unsafe()], None)).await.unwrap();
        }
        soon(other.close()).await;
        for (stream, _, errors) in &mut open {
            assert!(soon(errors.next()).await.is_none(), "{stream} must end after one error");
        }
    }
}

type Errors<'a> = futures_util::stream::BoxStream<'a, Error>;

/// Returns the errors of a stream.
fn errors<'a, T: Send + 'a>(stream: impl Stream<Item = Result<T, Error>> + Send + 'a) -> Errors<'a> {
    stream.filter_map(|item| std::future::ready(item.err())).boxed()
}
