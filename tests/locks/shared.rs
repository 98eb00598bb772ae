//! Tasks of one process that share tickets.

use crate::order::until_waiting;
use crate::{builder, connect};
use docent::guard::TurnFence;
use docent::locks::{AcquireError, MutexGuard, Owner};
use docent::queue::AckError;
use docent::recipe::VersionedNode;
use docent::{Client, CreateMode, ErrorKind, Fence, Lost, LostReason, Mutex, Queue};
use docent_battery::{Backend, FrameKind, Rule, TestServer, both_backends};
use docent_proto::OpCode;
use docent_tests::{PATIENCE, as_it_goes_on, soon};
use futures_util::future::{join_all, try_join_all};
use futures_util::poll;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex as StdMutex};
use std::time::Duration;
use tokio::task::JoinHandle;

type Shared = Mutex<TurnFence>;
type Waiting = JoinHandle<Result<MutexGuard<TurnFence>, AcquireError>>;

/// The mutex at `/lock`, whose tickets are passed on so many times, however long that takes.
fn shared(client: &Client, limit: u32) -> Shared {
    Mutex::builder(client, "/lock").share_in_process(limit).share_for(PATIENCE * 10).build().unwrap()
}

/// Tasks that wait one behind the other.
async fn waiters(mutex: &Shared, count: usize) -> Vec<Waiting> {
    let polled = Arc::new(AtomicUsize::new(0));
    let wait = |_| {
        let (acquire, polled) = (mutex.acquire(), Arc::clone(&polled));
        tokio::spawn(async move {
            let mut acquire = Box::pin(acquire);
            let first = poll!(acquire.as_mut());
            polled.fetch_add(1, Ordering::SeqCst);
            assert!(first.is_pending());
            acquire.await
        })
    };
    let waiters = (0..count).map(wait).collect();
    docent_tests::until(async || polled.load(Ordering::SeqCst) == count).await;
    waiters
}

fn requests(server: &TestServer) -> usize {
    let is_request = |op| op != Some(OpCode::Ping);
    let trace = server.front().trace();
    trace.iter().filter(|frame| frame.kind == FrameKind::Request && is_request(frame.op)).count()
}

async fn nodes(client: &Client) -> usize {
    client.children("/lock").await.map_or(0, |children| children.names.len())
}

async fn until_empty(client: &Client) {
    docent_tests::until(async || nodes(client).await == 0).await;
}

both_backends! {
    async fn a_draw_goes_on_after_the_end_of_the_runtime_that_began_it(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let held = soon(Mutex::new(&other, "/lock").unwrap().acquire()).await.unwrap();
        let mutex = shared(&client, 1_000);
        let (ended, end) = std::sync::mpsc::channel::<()>();
        let first = std::thread::spawn({
            let acquire = mutex.acquire();
            move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                let waiting = runtime.spawn(acquire);
                runtime.block_on(async { while end.try_recv().is_err() { tokio::time::sleep(Duration::from_millis(1)).await; } });
                assert!(!waiting.is_finished());
            }
        });
        docent_tests::until(async || nodes(&other).await == 2).await;
        let second = waiters(&mutex, 1).await.remove(0);
        ended.send(()).unwrap();
        tokio::task::spawn_blocking(|| first.join().unwrap()).await.unwrap();
        soon(held.release()).await.unwrap();
        let guard = soon(second).await.unwrap().unwrap();
        soon(guard.release()).await.unwrap();
        until_empty(&client).await;
    }

    async fn a_thousand_turns_cost_the_requests_of_one(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        client.create("/lock", "", CreateMode::Persistent).await.unwrap();
        let mutex = shared(&client, 1_000);
        let guard = soon(mutex.acquire()).await.unwrap();
        // The holder's watch on its own node.
        server.front().until(|trace| trace.iter().any(|frame| frame.is_reply(OpCode::GetData))).await;
        let before = requests(&server);
        let (busy, fences) = (Arc::new(AtomicBool::new(false)), Arc::new(StdMutex::new(vec![guard.fence()])));
        let tasks = (0..20).map(|_| {
            let (mutex, busy, fences) = (mutex.clone(), busy.clone(), fences.clone());
            tokio::spawn(async move {
                for _ in 0..50 {
                    let guard = mutex.acquire().await.unwrap();
                    assert!(!busy.swap(true, Ordering::SeqCst), "two hold the lock");
                    fences.lock().unwrap().push(guard.fence());
                    tokio::task::yield_now().await;
                    assert!(guard.is_held());
                    busy.store(false, Ordering::SeqCst);
                    drop(guard);
                }
            })
        });
        let tasks: Vec<_> = tasks.collect();
        drop(guard);
        as_it_goes_on(|| fences.lock().unwrap().len(), try_join_all(tasks)).await.unwrap();
        let fences = fences.lock().unwrap().clone();
        assert_eq!(fences.len(), 1_001);
        assert!(fences.is_sorted() && fences.windows(2).all(|pair| pair[0] < pair[1]), "fences do not increase");
        // A heartbeat may come in between, and the ticket's delete comes at the end. A task that comes when
        // the others have ended may take another ticket.
        let cost = requests(&server) - before;
        assert!(cost <= 12, "{cost} requests");
    }

    async fn tasks_have_their_turns_in_the_order_in_which_they_came(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutex = shared(&client, 100);
        let guard = soon(mutex.acquire()).await.unwrap();
        let served = Arc::new(StdMutex::new(Vec::new()));
        let mut waiting = Vec::new();
        for n in 0..10 {
            waiting.extend(waiters(&mutex, 1).await.into_iter().map(|waiter| {
                let served = served.clone();
                tokio::spawn(async move {
                    let guard = waiter.await.unwrap().unwrap();
                    served.lock().unwrap().push((n, guard.fence().turn()));
                    guard.release().await.unwrap();
                })
            }));
        }
        assert_eq!(nodes(&client).await, 1, "who waits behind another has no node");
        guard.release().await.unwrap();
        soon(try_join_all(waiting)).await.unwrap();
        assert_eq!(*served.lock().unwrap(), (0..10).map(|n| (n, n + 1)).collect::<Vec<_>>());
        assert_eq!(nodes(&client).await, 0, "the last release waits for the node's end");
    }

    async fn after_the_limit_others_in_the_line_have_their_turn(backend: Backend) {
        const LIMIT: u32 = 3;
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let mutex = shared(&client, LIMIT);
        let guard = soon(mutex.acquire()).await.unwrap();
        let theirs = Mutex::new(&other, "/lock").unwrap();
        let theirs_waits = tokio::spawn(theirs.acquire());
        until_waiting(&theirs, 2).await;
        let order = Arc::new(StdMutex::new(vec![guard.fence()]));
        let note = |waiter: Waiting| {
            let order = order.clone();
            tokio::spawn(async move {
                let guard = waiter.await.unwrap().unwrap();
                order.lock().unwrap().push(guard.fence());
                guard.release().await.unwrap();
            })
        };
        let waiting: Vec<_> = waiters(&mutex, 6).await.into_iter().map(note).collect();
        drop(guard);
        let theirs = soon(theirs_waits).await.unwrap().unwrap();
        assert_eq!(order.lock().unwrap().len(), 1 + LIMIT as usize, "turns before the other's");
        order.lock().unwrap().push(theirs.fence().into());
        theirs.release().await.unwrap();
        soon(try_join_all(waiting)).await.unwrap();
        let order = order.lock().unwrap().clone();
        assert_eq!(order.iter().map(|fence| fence.turn()).collect::<Vec<_>>(), [0, 1, 2, 3, 0, 0, 1, 2]);
        assert!(order.windows(2).all(|pair| pair[0] < pair[1]), "fences do not increase: {order:?}");
    }

    async fn after_its_time_a_ticket_is_not_passed_on(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let builder = Mutex::builder(&client, "/lock").share_in_process(100);
        let mutex = builder.share_for(Duration::ZERO).build().unwrap();
        let guard = soon(mutex.acquire()).await.unwrap();
        let waiting = waiters(&mutex, 2).await;
        let mut place = guard.path();
        drop(guard);
        for waiter in waiting {
            let guard = soon(waiter).await.unwrap().unwrap();
            assert_eq!(guard.fence().turn(), 0);
            assert_ne!(std::mem::replace(&mut place, guard.path()), guard.path());
        }
    }

    /// Why the number of a later transaction would not do for a fence.
    async fn a_write_to_the_ticket_is_younger_than_the_ticket_of_the_next_holder(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let mutex = shared(&client, 3);
        let guard = soon(mutex.acquire()).await.unwrap();
        let theirs = Mutex::new(&other, "/lock").unwrap();
        let waits = tokio::spawn(theirs.acquire());
        until_waiting(&theirs, 2).await;
        let next = waiters(&mutex, 1).await.remove(0);
        let first = guard.path();
        drop(guard);
        let second = soon(next).await.unwrap().unwrap();
        assert_eq!(second.path(), first);
        let written = client.set(&first, "x", None).await.unwrap();
        let younger = second.fence();
        drop(second);
        let theirs = soon(waits).await.unwrap().unwrap();
        assert!(i64::from(theirs.fence()) < written.mzxid, "a fence by that write would be too high");
        assert!(TurnFence::from(theirs.fence()) > younger);
    }

    async fn handles_of_one_path_and_settings_share_tickets_and_others_take_part_in_the_line(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let guard = soon(shared(&client, 9).acquire()).await.unwrap();
        let same = waiters(&shared(&client.clone(), 9), 1).await.remove(0);
        assert_eq!(nodes(&client).await, 1);
        let other = shared(&client, 8);
        let other = tokio::spawn(other.acquire());
        until_waiting(&Mutex::new(&client, "/lock").unwrap(), 2).await;
        drop(guard);
        let second = soon(same).await.unwrap().unwrap();
        assert_eq!(second.fence().turn(), 1);
        drop(second);
        assert_eq!(soon(other).await.unwrap().unwrap().fence().turn(), 0);
        // Nothing is left of them: the next ones begin anew.
        until_empty(&client).await;
        let _ = soon(shared(&client, 9).acquire()).await.unwrap();
    }

    async fn a_loss_reaches_the_holder_and_the_others_take_a_new_ticket_at_once(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let mutex = shared(&client, 9);
        let first = soon(mutex.acquire()).await.unwrap();
        let mut waiting = waiters(&mutex, 3).await;
        other.delete(&first.path(), None).await.unwrap();
        assert_eq!(soon(first.lost()).await, LostReason::NodeDeleted);
        assert!(!first.is_held() && first.token().is_cancelled() && first.reenter().is_err());
        // It is not waited for.
        let second = soon(waiting.remove(0)).await.unwrap().unwrap();
        assert!(second.is_held() && second.fence() > first.fence() && second.fence().turn() == 0);
        drop(first);
        assert!(second.is_held(), "the end of a turn that was lost changes nothing");
        let session = client.session_id().unwrap();
        server.expire(session).await.unwrap();
        assert_eq!(soon(second.lost()).await, LostReason::SessionExpired);
        let third = soon(waiting.remove(0)).await.unwrap().unwrap();
        assert!(third.is_held() && third.fence() > second.fence());
        assert_eq!(soon(second.release()).await.unwrap_err().kind(), ErrorKind::Lost(LostReason::SessionExpired));
        third.release().await.unwrap();
        assert_eq!(soon(waiting.remove(0)).await.unwrap().unwrap().fence().turn(), 1);
    }

    async fn a_token_tells_of_no_loss_after_the_end_of_its_turn(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let mutex = shared(&client, 9);
        let first = soon(mutex.acquire()).await.unwrap();
        let next = waiters(&mutex, 1).await.remove(0);
        let token = first.token();
        drop(first);
        let second = soon(next).await.unwrap().unwrap();
        other.delete(&second.path(), None).await.unwrap();
        soon(second.lost()).await;
        assert!(second.token().is_cancelled() && !token.is_cancelled());
    }

    async fn a_transaction_of_a_turn_that_is_over_is_refused(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutex = shared(&client, 9);
        let first = soon(mutex.acquire()).await.unwrap();
        let next = waiters(&mutex, 1).await.remove(0);
        let late = first.transaction().create("/late", "", CreateMode::Persistent);
        let done = first.transaction().create("/done", "", CreateMode::Persistent).commit();
        soon(done).await.unwrap();
        drop(first);
        let second = soon(next).await.unwrap().unwrap();
        assert_eq!(second.fence().turn(), 1, "what was answered keeps no ticket from being passed on");
        assert!(soon(late.commit()).await.unwrap_err().is_lost());
        soon(second.verify()).await.unwrap();
        assert_eq!(client.exists("/late").await.unwrap(), None);
    }

    async fn a_ticket_is_not_passed_on_while_a_write_of_a_turn_may_still_be_applied(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutex = shared(&client, 9);
        let first = soon(mutex.acquire()).await.unwrap();
        let next = waiters(&mutex, 1).await.remove(0);
        let mut commit = Box::pin(first.transaction().create("/late", "", CreateMode::Persistent).commit());
        assert!(poll!(commit.as_mut()).is_pending());
        drop(commit);
        let place = first.path();
        drop(first);
        let second = soon(next).await.unwrap().unwrap();
        assert!(second.path() != place && second.fence().turn() == 0);
    }

    async fn a_ticket_is_not_passed_on_while_a_node_that_a_turn_writes_may_still_change(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let (mutex, node) = (shared(&client, 9), VersionedNode::new(&client, "/value").unwrap());
        let (first, data) = (soon(mutex.acquire()).await.unwrap(), "x".into());
        let mut waiting = waiters(&mutex, 2).await;
        // Bound to the turn by the transaction that goes in place of the node's own.
        let with = |guard: &MutexGuard<TurnFence>, path| guard.transaction().create(path, "", CreateMode::Persistent);
        soon(node.write(None, &data, |_| with(&first, "/done"))).await.unwrap();
        drop(first);
        let second = soon(waiting.remove(0)).await.unwrap().unwrap();
        assert_eq!(second.fence().turn(), 1, "what was answered keeps no ticket from being passed on");
        let mut write = Box::pin(node.write(None, &data, |_| with(&second, "/late")));
        assert!(poll!(write.as_mut()).is_pending());
        drop(write);
        let place = second.path();
        drop(second);
        let third = soon(waiting.remove(0)).await.unwrap().unwrap();
        assert!(third.path() != place && third.fence().turn() == 0);
    }

    async fn a_ticket_is_not_passed_on_after_the_write_of_a_node_whose_outcome_is_unknown(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await.with_operation_timeout(Duration::from_secs(1));
        let (mutex, node) = (shared(&client, 9), VersionedNode::new(&client, "/value").unwrap());
        let first = soon(mutex.acquire()).await.unwrap();
        let next = waiters(&mutex, 1).await.remove(0);
        let held = server.front().add(Rule::on(OpCode::Multi).hold());
        let late = || first.transaction().create("/late", "", CreateMode::Persistent);
        let unknown = soon(node.write(None, &"x".into(), |_| late())).await.unwrap_err();
        soon(held.fired()).await;
        assert_eq!(unknown.kind(), ErrorKind::OutcomeUnknown);
        let place = first.path();
        drop(first);
        server.front().heal().await.unwrap();
        let second = soon(next).await.unwrap().unwrap();
        assert!(second.path() != place && second.fence().turn() == 0);
    }

    async fn a_turns_transaction_that_goes_with_an_acknowledgement_is_refused_after_the_turn(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let (mutex, jobs) = (shared(&client, 9), Queue::<u64>::new(&client, "/jobs").unwrap());
        jobs.put_all(&[1, 2]).await.unwrap();
        let first = soon(mutex.acquire()).await.unwrap();
        let next = waiters(&mutex, 1).await.remove(0);
        let late = first.transaction().create("/late", "", CreateMode::Persistent);
        let done = first.transaction().create("/done", "", CreateMode::Persistent);
        soon(soon(jobs.take()).await.unwrap().ack_with(done)).await.unwrap();
        drop(first);
        let second = soon(next).await.unwrap().unwrap();
        assert_eq!(second.fence().turn(), 1, "what was answered keeps no ticket from being passed on");
        let refused = soon(soon(jobs.take()).await.unwrap().ack_with(late)).await.unwrap_err();
        assert!(matches!(refused, AckError::Lost(Lost { reason: LostReason::Released, .. })), "{refused:?}");
        soon(second.verify()).await.unwrap();
        assert_eq!(client.exists("/late").await.unwrap(), None);
        assert_eq!(*soon(jobs.take()).await.unwrap().item(), 2);
    }

    async fn a_ticket_is_not_passed_on_while_an_acknowledgement_of_a_turn_may_still_be_applied(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let (mutex, jobs) = (shared(&client, 9), Queue::<u64>::new(&client, "/jobs").unwrap());
        jobs.put(&1).await.unwrap();
        let first = soon(mutex.acquire()).await.unwrap();
        let next = waiters(&mutex, 1).await.remove(0);
        let delivery = soon(jobs.take()).await.unwrap();
        let late = first.transaction().create("/late", "", CreateMode::Persistent);
        let mut ack = Box::pin(delivery.ack_with(late));
        assert!(poll!(ack.as_mut()).is_pending());
        drop(ack);
        let place = first.path();
        drop(first);
        let second = soon(next).await.unwrap().unwrap();
        assert!(second.path() != place && second.fence().turn() == 0);
    }

    async fn a_task_that_leaves_when_it_gets_its_turn_passes_it_on(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutex = shared(&client, 9);
        let guard = soon(mutex.acquire()).await.unwrap();
        let mut leaves = Box::pin(mutex.acquire());
        assert!(poll!(leaves.as_mut()).is_pending());
        let next = waiters(&mutex, 1).await.remove(0);
        drop(guard);
        // It has its turn by now, and does not know.
        drop(leaves);
        let guard = soon(next).await.unwrap().unwrap();
        assert_eq!(guard.fence().turn(), 2);
        drop(guard);
        until_empty(&client).await;
    }

    async fn a_turn_that_was_lost_before_it_was_taken_is_not_taken(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let mutex = shared(&client, 9);
        let guard = soon(mutex.acquire()).await.unwrap();
        let mut late = Box::pin(mutex.acquire());
        assert!(poll!(late.as_mut()).is_pending());
        let next = waiters(&mutex, 1).await.remove(0);
        let place = guard.path();
        drop(guard);
        other.delete(&place, None).await.unwrap();
        // The other one draws as soon as the loss is known.
        let guard = soon(next).await.unwrap().unwrap();
        assert!(guard.fence().turn() == 0 && guard.path() != place);
        assert!(poll!(late.as_mut()).is_pending());
        drop(guard);
        let late = soon(late).await.unwrap();
        assert!(late.is_held() && late.path() != place);
    }

    async fn the_draw_of_a_task_that_leaves_goes_on_for_the_next(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let held = soon(Mutex::new(&other, "/lock").unwrap().acquire()).await.unwrap();
        let mutex = shared(&client, 9);
        let first = waiters(&mutex, 1).await.remove(0);
        until_waiting(&Mutex::new(&other, "/lock").unwrap(), 2).await;
        let place = client.children("/lock").await.unwrap().names.into_iter().max_by_key(|name| {
            name.rsplit('-').next().map(str::to_owned)
        });
        let mut others = waiters(&mutex, 2).await;
        first.abort();
        let _ = first.await;
        drop(held);
        let guard = soon(others.remove(0)).await.unwrap().unwrap();
        assert!(guard.path().ends_with(&place.unwrap()), "the place in the line is kept");
        others.remove(0).abort();
        drop(guard);
        until_empty(&client).await;
    }

    async fn who_gives_up_the_draw_of_a_task_that_left_is_told_how_many_are_ahead(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let held = soon(Mutex::new(&other, "/lock").unwrap().acquire()).await.unwrap();
        let mutex = shared(&client, 9);
        let first = waiters(&mutex, 1).await.remove(0);
        until_waiting(&Mutex::new(&other, "/lock").unwrap(), 2).await;
        let mut gives_up = Box::pin(mutex.acquire_timeout(Duration::from_secs(1)));
        assert!(poll!(gives_up.as_mut()).is_pending());
        first.abort();
        let _ = first.await;
        let Err(AcquireError::TimedOut(missed)) = soon(gives_up).await else { panic!("it is held") };
        assert_eq!(missed.ahead(), Some(1));
        drop(held);
        until_empty(&client).await;
    }

    async fn tasks_that_come_and_leave_at_any_moment_leave_nothing(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let mutex = shared(&client, 4);
        let busy = Arc::new(AtomicBool::new(false));
        let done = Arc::new(AtomicUsize::new(0));
        let storm = (0..200_u32).map(|n| {
            let (mutex, busy, done) = (mutex.clone(), busy.clone(), done.clone());
            tokio::spawn(async move {
                let mut acquire = Box::pin(mutex.acquire());
                for _ in 0..n % 7 {
                    if let std::task::Poll::Ready(guard) = poll!(acquire.as_mut()) {
                        drop(guard);
                        return;
                    }
                    tokio::task::yield_now().await;
                }
                if n % 3 != 0 {
                    return;
                }
                let guard = acquire.await.unwrap();
                assert!(!busy.swap(true, Ordering::SeqCst), "two hold the lock");
                tokio::task::yield_now().await;
                busy.store(false, Ordering::SeqCst);
                drop(guard);
                done.fetch_add(1, Ordering::SeqCst);
            })
        });
        let storm: Vec<_> = storm.collect();
        let theirs = Mutex::new(&other, "/lock").unwrap();
        let beside = tokio::spawn(async move {
            for _ in 0..5 {
                theirs.acquire().await.unwrap().release().await.unwrap();
            }
        });
        as_it_goes_on(|| done.load(Ordering::SeqCst), try_join_all(storm)).await.unwrap();
        soon(beside).await.unwrap();
        until_empty(&client).await;
        let _ = soon(mutex.try_acquire()).await.unwrap();
    }

    async fn who_tries_or_gives_up_is_told_of_the_task_that_holds_it(backend: Backend) {
        let server = backend.start().await;
        let client = builder(&server, server.connect_string()).identity("host-7").connect().await.unwrap();
        let mutex = shared(&client, 9);
        let guard = soon(mutex.try_acquire()).await.unwrap();
        let before = requests(&server);
        let Err(AcquireError::Busy(missed)) = soon(mutex.try_acquire()).await else { panic!("it is held") };
        assert_eq!(missed.holder().unwrap().identity_text().as_deref(), Some("host-7"));
        assert_eq!((missed.ahead(), missed.path()), (Some(1), "/lock"));
        let Err(AcquireError::TimedOut(missed)) = soon(mutex.acquire_timeout(Duration::from_secs(1))).await else {
            panic!("it is held");
        };
        assert_eq!(missed.holder().unwrap().identity_text().as_deref(), Some("host-7"));
        assert!(missed.servers_reachable());
        let creates = server.front().trace().iter().filter(|frame| frame.is_request(OpCode::Create2)).count();
        assert!(creates <= 2 && requests(&server) - before <= 8, "they ask, and write nothing");
        drop(guard);
        drop(soon(mutex.try_acquire()).await.unwrap());
        // Of two the one that only tries does not keep the other waiting.
        let held = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
        let (tried, waits) = (tokio::spawn(mutex.try_acquire()), tokio::spawn(mutex.acquire()));
        assert!(matches!(soon(tried).await.unwrap(), Err(AcquireError::Busy(_))));
        until_waiting(&Mutex::new(&client, "/lock").unwrap(), 2).await;
        drop(held);
        drop(soon(waits).await.unwrap().unwrap());
    }

    async fn an_owner_re_enters_its_turn_and_is_told_where_it_would_wait_for_itself(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let (mutex, owner) = (shared(&client, 9), Owner::new());
        let guard = soon(mutex.acquire_as(&owner)).await.unwrap();
        let next = waiters(&mutex, 1).await.remove(0);
        let again = soon(mutex.acquire_as(&owner)).await.unwrap();
        let third = again.reenter().unwrap();
        assert!(again.fence() == guard.fence() && third.fence() == guard.fence());
        let plain = Mutex::new(&client, "/lock").unwrap();
        assert!(matches!(soon(plain.acquire_as(&owner)).await, Err(AcquireError::WouldDeadlock)));
        drop(guard);
        again.release().await.unwrap();
        assert!(!next.is_finished() && third.is_held());
        drop(third);
        let guard = soon(next).await.unwrap().unwrap();
        assert_eq!(guard.fence().turn(), 1);
        drop(guard);
        // The other way round it is the same hold, whose fence has no turn but the first.
        let plain = soon(plain.acquire_as(&owner)).await.unwrap();
        let shared = soon(mutex.acquire_as(&owner)).await.unwrap();
        assert_eq!(shared.fence(), TurnFence::from(plain.fence()));
    }

    async fn a_ticket_that_is_asked_for_is_not_passed_on(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let mutex = shared(&client, 9);
        let guard = soon(mutex.acquire()).await.unwrap();
        let next = waiters(&mutex, 1).await.remove(0);
        let theirs = Mutex::new(&other, "/lock").unwrap();
        soon(theirs.revoke(&soon(theirs.participants()).await.unwrap()[0])).await.unwrap();
        soon(guard.revoked()).await;
        assert!(guard.is_held());
        let place = guard.path();
        drop(guard);
        let guard = soon(next).await.unwrap().unwrap();
        assert!(guard.path() != place && guard.fence().turn() == 0);
    }

    async fn a_client_that_shuts_down_passes_nothing_on(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutex = shared(&client, 9);
        let guard = soon(mutex.acquire()).await.unwrap();
        let waiting = waiters(&mutex, 3).await;
        let shutdown = tokio::spawn(client.clone().shutdown(PATIENCE));
        soon(guard.revoked()).await;
        drop(guard);
        for waiter in waiting {
            let Err(AcquireError::Core(error)) = soon(waiter).await.unwrap() else { panic!("it has a turn") };
            assert_eq!(error.kind(), ErrorKind::Closed);
        }
        soon(shutdown).await.unwrap();
    }

    async fn a_client_that_is_closed_ends_holder_and_waiters(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutex = shared(&client, 9);
        let guard = soon(mutex.acquire()).await.unwrap();
        let waiting = waiters(&mutex, 3).await;
        let close = tokio::spawn(async move { client.close().await });
        assert_eq!(soon(guard.lost()).await, LostReason::Closed);
        for waiter in soon(join_all(waiting)).await {
            let Err(AcquireError::Core(error)) = waiter.unwrap() else { panic!("it has a turn") };
            assert_eq!(error.kind(), ErrorKind::Closed);
        }
        drop(guard);
        soon(close).await.unwrap();
    }

    async fn a_turn_is_passed_on_by_a_panic_and_outside_of_a_runtime(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutex = shared(&client, 9);
        let guard = soon(mutex.acquire()).await.unwrap();
        let mut waiting = waiters(&mutex, 2).await;
        drop(mutex);
        let panics = tokio::spawn(async move {
            let _guard = guard;
            panic!("while it is held");
        });
        assert!(panics.await.is_err());
        let guard = soon(waiting.remove(0)).await.unwrap().unwrap();
        assert_eq!(guard.fence().turn(), 1);
        std::thread::spawn(move || drop(guard)).join().unwrap();
        let guard = soon(waiting.remove(0)).await.unwrap().unwrap();
        assert_eq!(guard.fence().turn(), 2);
        std::thread::spawn(move || drop(guard)).join().unwrap();
        until_empty(&client).await;
    }
}

#[tokio::test]
async fn a_limit_of_zero_is_refused() {
    let client = Client::builder("127.0.0.1:1").build().unwrap();
    let refused = Mutex::builder(&client, "/lock").share_in_process(0).build().unwrap_err();
    assert!(refused.to_string().contains("the limit 0"), "{refused}");
}

#[tokio::test]
async fn a_guard_of_a_turn_has_no_fence_of_64_bits() {
    fn fence_of(guard: &impl docent::guard::Guard) -> Option<Fence> {
        guard.fence()
    }
    let server = Backend::Embedded.start().await;
    let client = connect(&server).await;
    let guard = soon(shared(&client, 1).acquire()).await.unwrap();
    assert_eq!(fence_of(&guard), None);
    drop(guard);
    assert!(fence_of(&soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap()).is_some());
}
