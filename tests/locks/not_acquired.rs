//! Errors of calls that give up contain the call's place, the holder, and whether a server answered.

use crate::{builder, connect};
use docent::locks::{AcquireError, NotAcquired, Role};
use docent::{Client, MultiLock, Mutex, RwLock, Semaphore};
use docent_battery::{Backend, Direction, Rule, TestServer, both_backends};
use docent_proto::OpCode;
use docent_tests::{soon, until};
use std::time::Duration;

/// Timeout, long enough for a busy machine to look up the holder in a quarter of it.
const TIME: Duration = Duration::from_secs(4);

async fn labelled(server: &TestServer, label: &str) -> Client {
    builder(server, server.connect_string()).label(label).connect().await.unwrap()
}

fn missed<T>(result: Result<T, AcquireError>) -> (NotAcquired, String) {
    let Err(error) = result else { panic!("expected an error") };
    assert!(error.is_retryable() && !error.may_have_applied(), "{error}");
    let missed = error.not_acquired().unwrap_or_else(|| panic!("{error}")).clone();
    assert_eq!(error.path(), Some(missed.path()));
    (missed, error.to_string())
}

fn held_by(missed: &NotAcquired, label: &str) -> bool {
    let client = missed.holder().and_then(docent::locks::Participant::client);
    client.is_some_and(|client| client.label() == Some(label) && client.pid() == std::process::id())
}

both_backends! {
    async fn a_timeout_names_the_holder_and_the_place_in_the_line(backend: Backend) {
        let server = backend.start().await;
        let (first, client) = (labelled(&server, "first").await, labelled(&server, "other").await);
        let holder = soon(Mutex::new(&first, "/a/b").unwrap().acquire()).await.unwrap();
        let mutex = Mutex::new(&client, "/a/b").unwrap();
        let ahead = tokio::spawn(mutex.acquire());
        until(async || mutex.participants().await.unwrap().len() == 2).await;
        let (late, text) = missed(soon(mutex.acquire_timeout(TIME)).await);
        assert_eq!((late.path(), late.timeout(), late.ahead()), ("/a/b", Some(TIME), Some(2)));
        assert!(held_by(&late, "first") && late.servers_reachable(), "{late:?}");
        let name = late.holder().unwrap().identity_text().unwrap();
        let start = format!("acquire \"/a/b\": not acquired in 4s: held by {name}");
        assert!(text.starts_with(&start) && text.ends_with(", 2 ahead"), "{text}");
        soon(holder.release()).await.unwrap();
        drop(soon(ahead).await.unwrap().unwrap());
    }

    async fn timeouts_of_readers_permits_and_sets_name_the_holder(backend: Backend) {
        let server = backend.start().await;
        let (first, client) = (labelled(&server, "first").await, labelled(&server, "other").await);
        let _writer = soon(RwLock::new(&first, "/rw").unwrap().write()).await.unwrap();
        let _permit = soon(Semaphore::new(&first, "/s", 1).unwrap().acquire()).await.unwrap();
        let _second = soon(Mutex::new(&first, "/m2").unwrap().acquire()).await.unwrap();
        let lock = RwLock::new(&client, "/rw").unwrap();
        let semaphore = Semaphore::new(&client, "/s", 1).unwrap();
        let both = MultiLock::new(["/m1", "/m2"].map(|path| Mutex::new(&client, path).unwrap())).unwrap();
        let all = async {
            tokio::join!(
                lock.read_timeout(TIME),
                lock.write_timeout(TIME),
                semaphore.acquire_timeout(TIME),
                both.acquire_timeout(TIME)
            )
        };
        let (read, write, permit, both) = soon(all).await;
        for (late, path, ahead) in [
            (missed(read).0, "/rw", 1..=1),
            (missed(write).0, "/rw", 1..=2),
            (missed(permit).0, "/s", 0..=0),
            (missed(both).0, "/m2", 1..=1),
        ] {
            assert!(late.path() == path && ahead.contains(&late.ahead().unwrap()), "{late:?}");
            assert!(held_by(&late, "first") && late.servers_reachable(), "{late:?}");
        }
    }

    async fn a_try_names_the_holder(backend: Backend) {
        let server = backend.start().await;
        let (first, client) = (labelled(&server, "first").await, labelled(&server, "other").await);
        let _held = soon(Mutex::new(&first, "/m").unwrap().acquire()).await.unwrap();
        let _reader = soon(RwLock::new(&first, "/rw").unwrap().read()).await.unwrap();
        let _permit = soon(Semaphore::new(&first, "/s", 1).unwrap().acquire()).await.unwrap();
        let mutex = Mutex::new(&client, "/m").unwrap();
        let both = MultiLock::new([&mutex]).unwrap();
        let (write, permit) = (RwLock::new(&client, "/rw").unwrap(), Semaphore::new(&client, "/s", 1).unwrap());
        for ((busy, text), path) in [
            (missed(soon(mutex.try_acquire()).await), "/m"),
            (missed(soon(both.try_acquire()).await), "/m"),
            (missed(soon(write.try_write()).await), "/rw"),
            (missed(soon(permit.try_acquire()).await), "/s"),
        ] {
            assert!(busy.path() == path && held_by(&busy, "first") && busy.servers_reachable(), "{busy:?}");
            let name = busy.holder().unwrap().identity_text().unwrap();
            assert!(text.starts_with(&format!("acquire {path:?}: not free: held by {name}")), "{text}");
        }
        assert_eq!(soon(mutex.participants()).await.unwrap()[0].role, Role::Exclusive);
    }

    async fn a_refusal_is_reported_even_if_the_holder_is_unknown(backend: Backend) {
        let server = backend.start().await;
        let (first, proxy) = (labelled(&server, "first").await, server.proxy().await);
        let settings = builder(&server, proxy.connect_string()).operation_timeout(Duration::from_secs(2));
        let client = settings.session_timeout(TIME * 5).connect().await.unwrap();
        let _held = soon(Mutex::new(&first, "/m").unwrap().acquire()).await.unwrap();
        let _permit = soon(Semaphore::new(&first, "/s", 1).unwrap().acquire()).await.unwrap();
        let (mutex, semaphore) = (Mutex::new(&client, "/m").unwrap(), Semaphore::new(&client, "/s", 1).unwrap());
        let reads = |folder: &'static str| Rule::on(OpCode::GetData).path(move |path| path.contains(folder));
        let read = proxy.add(reads("/m/").swallow_reply());
        let (busy, text) = missed(soon(MultiLock::new([&mutex]).unwrap().try_acquire()).await);
        assert!(read.has_fired() && busy.holder().is_none() && busy.servers_reachable(), "{busy:?}");
        assert_eq!((busy.path(), busy.ahead()), ("/m", Some(1)));
        assert_eq!(text, "acquire \"/m\": not free: 1 ahead");
        // The same on the next link.
        proxy.reset().await;
        let read = proxy.add(reads("/s/leases/").swallow_reply());
        let (busy, _) = missed(soon(semaphore.try_acquire()).await);
        assert!(read.has_fired() && busy.holder().is_none() && busy.path() == "/s", "{busy:?}");
    }

    async fn concurrent_timeouts_share_one_lookup_of_the_holder(backend: Backend) {
        const MANY: usize = 100;
        let server = backend.start().await;
        let (first, proxy) = (labelled(&server, "first").await, server.proxy().await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let line = Mutex::new(&first, "/m").unwrap();
        let _held = soon(line.acquire()).await.unwrap();
        let mutex = Mutex::new(&client, "/m").unwrap();
        let waiting: Vec<_> = (0..MANY).map(|_| tokio::spawn(mutex.acquire_timeout(TIME))).collect();
        until(async || line.participants().await.unwrap().len() == MANY + 1).await;
        let listings = || proxy.trace().iter().filter(|frame| frame.is_request(OpCode::GetChildren2)).count();
        let before = listings();
        proxy.set_delay(Direction::ToClient, Duration::from_millis(200));
        for waiting in waiting {
            let (late, _) = missed(soon(waiting).await.unwrap());
            assert!(held_by(&late, "first") && late.servers_reachable() && late.ahead().is_some(), "{late:?}");
        }
        let sent = listings() - before;
        assert!((1..MANY / 5).contains(&sent), "{sent} listings");
    }

    async fn an_acquire_that_succeeds_in_time_sends_no_extra_request(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutex = Mutex::new(&client, "/m").unwrap();
        soon(mutex.acquire()).await.unwrap().release().await.unwrap();
        let requests = || {
            let trace = server.front().trace();
            let counts = [OpCode::Create2, OpCode::GetChildren2, OpCode::GetData];
            counts.map(|op| trace.iter().filter(|frame| frame.is_request(op)).count())
        };
        let before = requests();
        let guard = soon(mutex.acquire_timeout(Duration::from_secs(600))).await.unwrap();
        // The holder watches its own node.
        until(async || requests()[2] > before[2]).await;
        assert_eq!(requests(), [before[0] + 1, before[1] + 1, before[2] + 1]);
        soon(guard.release()).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_not_reported_as_a_held_lock() {
    let server = Backend::Memory.start_own().await;
    let holder = connect(&server).await;
    let proxy = server.proxy().await;
    let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
    let _held = soon(Mutex::new(&holder, "/held").unwrap().acquire()).await.unwrap();
    let waits = tokio::spawn(Mutex::new(&client, "/held").unwrap().acquire_timeout(TIME));
    let line = Mutex::new(&holder, "/held").unwrap();
    until(async || line.participants().await.unwrap().len() == 2).await;
    // The link stays open but delivers nothing. The call ends long before the client drops the link.
    proxy.blackhole();
    let (silent, text) = missed(soon(waits).await.unwrap());
    assert!(!silent.servers_reachable() && silent.holder().is_none(), "{silent:?}");
    assert_eq!(text, "acquire \"/held\": not acquired in 4s: no server answered");
    assert_eq!(silent.ahead(), Some(1), "the last known place must be reported");
    server.stop().await;
    let (unreachable, _) = missed(soon(Mutex::new(&client, "/free").unwrap().acquire_timeout(TIME)).await);
    assert!(!unreachable.servers_reachable() && unreachable.ahead().is_none(), "{unreachable:?}");
}
