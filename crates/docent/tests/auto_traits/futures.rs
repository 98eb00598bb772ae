//! Futures. The futures of a handle borrow nothing; the exceptions are listed with the reason.

use crate::{borrows, free};
use docent::cache::{ChildrenCache, NodeCache, TreeCache};
use docent::config::{
    Config, ConfigTree, Counter, LayeredConfig, LayeredSubscription, SharedCount, SharedValue, Snapshot,
    Subscription, TreeSubscription, TypedNode,
};
use docent::discovery::{Instance, Member, Membership, Registration, Registry, Service};
use docent::election::{Election, Leadership};
use docent::inspect::Inspector;
use docent::locks::{
    Barrier, DoubleBarrier, Entered, MultiGuard, MultiLock, Mutex, MutexGuard, Owner, Partitioner, Permit,
    ReadGuard, RwLock, Semaphore, Share, SharedLimit, SharedMutex, SharedMutexGuard, TimedLease, WriteGuard,
};
use docent::node::{Acl, Transaction};
use docent::queue::{DeadLetter, DeadLetters, Delivery, PutOptions, Queue, SimpleQueue};
use docent::recipe::Participant;
use docent::{Client, CreateMode};
use std::future::{pending, ready};
use std::time::Duration;

const T: Duration = Duration::from_secs(1);

fn of_a_shared_mutex(mutex: &SharedMutex, owner: &Owner) {
    free(mutex.acquire());
    free(mutex.acquire_as(owner));
    free(mutex.try_acquire());
    free(mutex.acquire_timeout(T));
}

fn of_inspectors(inspector: &Inspector) {
    free(inspector.path("/"));
    free(inspector.walk("/"));
}

fn of_locks(mutex: &Mutex, lock: &RwLock, semaphore: &Semaphore, owner: &Owner, participant: &Participant) {
    free(mutex.acquire());
    free(mutex.acquire_as(owner));
    free(mutex.try_acquire());
    free(mutex.acquire_timeout(T));
    free(mutex.participants());
    free(mutex.revoke(participant));
    free(mutex.reset());
    free(lock.read());
    free(lock.read_as(owner));
    free(lock.try_read());
    free(lock.read_timeout(T));
    free(lock.write());
    free(lock.write_as(owner));
    free(lock.try_write());
    free(lock.write_timeout(T));
    free(lock.participants());
    free(lock.revoke(participant));
    free(lock.reset());
    free(semaphore.acquire());
    free(semaphore.acquire_many(2));
    free(semaphore.try_acquire());
    free(semaphore.try_acquire_many(2));
    free(semaphore.acquire_timeout(T));
    free(semaphore.acquire_many_timeout(2, T));
    free(semaphore.participants());
    free(semaphore.revoke(participant));
    free(Owner::scope(ready(())));
    free(owner.clone().within(ready(())));
}

fn of_several(multi: &MultiLock, limit: &SharedLimit, barrier: &Barrier, double: &DoubleBarrier) {
    free(multi.acquire());
    free(multi.acquire_as(&Owner::new()));
    free(multi.try_acquire());
    free(multi.acquire_timeout(T));
    free(limit.get());
    free(limit.set(2));
    free(barrier.set());
    free(barrier.is_set());
    free(barrier.remove());
    free(barrier.wait());
    free(barrier.wait_timeout(T));
    free(double.enter());
    free(double.enter_timeout(T));
}

/// Methods that end a guard consume it. The other futures borrow the guard, so that no caller waits for, or
/// works under, a guard that was dropped meanwhile.
macro_rules! guards {
    ($($of:ident($guard:ty) { $($more:tt)* })+) => {
        $(fn $of(guard: &$guard, ending: [$guard; 2]) {
            borrows(guard.lost());
            borrows(guard.revoked());
            borrows(guard.run(ready(())));
            borrows(guard.verify());
            let [_one, _other] = ending;
            guards!(@more guard _one _other $($more)*);
        })+
    };
    (@more $guard:ident $one:ident $other:ident release $($more:tt)*) => {
        free($one.release());
        guards!(@more $guard $one $other $($more)*);
    };
    (@more $guard:ident $one:ident $other:ident downgrade) => { free($other.downgrade()); };
    (@more $guard:ident $one:ident $other:ident resign) => { free($other.resign()); };
    (@more $guard:ident $one:ident $other:ident) => {};
}

guards! {
    of_a_mutex_guard(MutexGuard) { release }
    of_a_guard_of_a_turn(SharedMutexGuard) { release }
    of_a_read_guard(ReadGuard) { release }
    of_a_write_guard(WriteGuard) { release downgrade }
    of_a_permit(Permit) { release }
    of_a_multi_guard(MultiGuard) { release }
    of_a_leadership(Leadership) { resign }
}

fn of_a_leader(leadership: &Leadership) {
    borrows(leadership.proclaim("ready"));
}

fn of_elections(election: &Election) {
    free(election.campaign());
    free(election.leader());
    free(election.candidates());
    free(election.wait_for_leader());
    free(election.reset());
    free(election.run(|leadership| async move { leadership.resign().await.map(drop) }));
    free(
        election.run(|leadership| async move { leadership.resign().await.map(drop) }).until(pending::<()>()),
    );
}

fn of_discovery(registry: &Registry, instance: &Instance<u32>, service: &Service<u32>, group: &Membership) {
    free(registry.register(instance.clone()));
    free(registry.consume("web", instance.clone()));
    free(registry.typed_service::<u32>("web"));
    free(registry.service_builder::<u32>("web").open());
    free(registry.typed_consumers::<u32>("web"));
    free(registry.names());
    free(service.ready());
    free(group.join("host-7", "10.0.0.7"));
    free(group.join_by_identity("host-7"));
    free(group.members());
}

/// Handles that keep a node present are not cloned, and their futures borrow them like the futures of a
/// guard.
fn of_own_nodes(
    registration: &mut Registration,
    [draining, ending]: [Registration; 2],
    member: &mut Member,
    leaving: Member,
    entered: Entered,
    instance: Instance<u32>,
) {
    borrows(registration.changed());
    borrows(registration.announced());
    borrows(registration.update(instance));
    borrows(registration.set_enabled(true));
    free(draining.drain(T));
    free(ending.deregister());
    borrows(member.changed());
    free(leaving.leave());
    free(entered.leave());
}

fn of_configuration(
    config: &Config<u32>,
    tree: &ConfigTree<u32>,
    layered: &LayeredConfig<u32>,
    seen: &Snapshot<u32>,
) -> Option<()> {
    free(config.publish(&7));
    free(config.publish_if(&7, seen));
    free(config.publish_new(&7));
    free(config.update(|now| now));
    free(config.history());
    free(config.rollback(&seen.revision()?));
    free(config.rollback_if(&seen.revision()?, &seen.revision()?));
    free(config.subscribe_when_published());
    free(config.delete());
    free(config.get());
    free(config.subscribe());
    free(tree.subscribe());
    free(layered.subscribe());
    Some(())
}

fn of_shared_values(
    count: &SharedCount,
    value: &SharedValue,
    one: &Snapshot<i32>,
    other: &Snapshot<bytes::Bytes>,
) {
    free(count.get());
    free(count.set(7));
    free(count.compare_and_set(one, 7));
    free(count.subscribe());
    free(value.get());
    free(value.set("7"));
    free(value.compare_and_set(other, "7"));
    free(value.subscribe());
}

fn of_typed_nodes(node: &TypedNode<u32>) {
    free(node.get());
    free(node.create(&1));
    free(node.set(&1));
    free(node.update(|now| now));
    free(node.delete());
}

fn of_counters(counter: &Counter<i64>) {
    free(counter.get());
    free(counter.increment());
    free(counter.decrement());
    free(counter.add(2));
    free(counter.subtract(2));
    free(counter.set(7));
    free(counter.compare_and_set(7, 8));
    free(counter.initialize(7));
}

/// Reads of a subscription, which belongs to one reader: the futures borrow it mutably.
fn of_streams(
    subscription: &mut Subscription<u32>,
    tree: &mut TreeSubscription<u32>,
    layered: &mut LayeredSubscription<u32>,
) {
    borrows(subscription.changed());
    borrows(tree.changed());
    borrows(layered.changed());
}

fn of_queues(queue: &Queue<u32>, letters: &DeadLetters<u32>, letter: &DeadLetter, simple: &SimpleQueue) {
    let options = PutOptions::new();
    free(queue.put(&1));
    free(queue.put_with(&1, options));
    free(queue.put_all(&[1]));
    free(queue.put_all_with(&[1], options));
    free(queue.put_ephemeral(&1));
    free(queue.take());
    free(queue.try_take());
    free(queue.take_timeout(T));
    free(queue.take_batch(2));
    free(queue.peek());
    free(queue.len());
    free(queue.is_empty());
    free(queue.list());
    free(queue.purge());
    free(queue.reset());
    free(queue.reschedule("item-0000000000", options));
    free(letters.list());
    free(letters.len());
    free(letters.is_empty());
    free(letters.requeue(letter));
    free(letters.requeue_as(letter, &1));
    free(letters.delete(letter));
    free(letters.purge());
    free(simple.put(""));
    free(simple.take());
    free(simple.take_timeout(T));
    free(simple.try_take());
    free(simple.peek());
    free(simple.len());
    free(simple.is_empty());
}

/// Methods that inspect a delivery borrow it; methods that end it consume it.
fn of_a_delivery(
    delivery: Delivery<u32>,
    other: &Queue<u32>,
    transaction: Transaction,
    more: [Delivery<u32>; 7],
) {
    borrows(delivery.lost());
    borrows(delivery.revoked());
    borrows(delivery.verify());
    borrows(delivery.run(pending::<()>()));
    free(delivery.ack());
    let [into_item, with, put, nack, reject, put_back, all] = more;
    free(with.ack_with(transaction));
    free(into_item.into_item());
    free(nack.nack_now());
    free(reject.reject("no"));
    free(put_back.put_back(PutOptions::new()));
    borrows(put.ack_and_put(other, &1));
    free(Delivery::ack_all(vec![all]));
}

/// Only one share of a member exists at a time, so the futures borrow the member.
fn of_a_group(partitioner: Partitioner, share: Share, lease: &TimedLease) {
    borrows(partitioner.acquire());
    free(partitioner.leave());
    borrows(share.changed());
    borrows(share.run(pending::<()>()));
    free(share.release());
    free(lease.try_obtain());
    free(lease.give_back());
}

fn of_caches(children: &ChildrenCache, node: &NodeCache, tree: &TreeCache) {
    free(tree.ready());
    free(children.ready());
    free(node.ready());
}

/// The futures of a client's requests borrow the client and the path: recipes send many requests, and nothing
/// is copied.
fn of_a_client(client: &Client, acl: Vec<Acl>, [one, other]: [Transaction; 2]) {
    free(Client::connect("localhost"));
    borrows(client.create("/a", "", CreateMode::Persistent));
    borrows(client.get("/a"));
    borrows(client.set("/a", "", None));
    borrows(client.delete("/a", None));
    borrows(client.ensure_absent("/a"));
    borrows(client.exists("/a"));
    borrows(client.children("/a"));
    borrows(client.acl("/a"));
    borrows(client.set_acl("/a", acl, None));
    borrows(client.sync("/a"));
    borrows(client.check_clock(T));
    borrows(client.who_am_i());
    borrows(client.close());
    free(one.commit());
    free(other.commit_exactly());
}

#[test]
fn the_functions_need_only_compile() {
    let _ = (of_locks, of_a_shared_mutex, of_several, of_elections, of_discovery, of_own_nodes);
    let _ =
        (of_configuration, of_typed_nodes, of_shared_values, of_counters, of_streams, of_caches, of_a_client);
    let _ = (of_a_mutex_guard, of_a_read_guard, of_a_write_guard, of_a_permit, of_a_multi_guard);
    let _ = (of_a_guard_of_a_turn, of_inspectors);
    let _ = (of_a_leader, of_a_leadership, of_queues, of_a_delivery, of_a_group);
}
