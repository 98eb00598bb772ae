//! The minimal requests of each recipe, sent from bare sockets without any other work. A figure here shows
//! what the server permits.

use super::config::{DeliveryTimes, report_seen};
use super::crowd::{Crowd, Done};
use super::election::PAUSE;
use super::queues::{ITEM, ROOM};
use super::series::{Measured, add_times};
use super::worker::client;
use crate::clients::{Bare, Client};
use crate::recipes::order::{Answer, Order};
use crate::recipes::populated::SERVICE;
use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use docent::node::CreateMode as Mode;
use docent_proto::{Acl, Create, CreateMode, MultiOp, MultiResult, Request, Response, WatchMode};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

/// Name of a contender's node, as long as the names of Curator and Docent.
const CONTENDER: &str = "_c_00000000-0000-0000-0000-000000000000-lock-";
/// Name of an instance, as long as the names of Curator and Docent.
const INSTANCE: &str = "00000000-0000-0000-0000-000000000000";
/// Nodes read in one request. Each takes about 80 bytes in the request, of which servers accept 1 MB.
const NODES_PER_READ: usize = 10_000;

pub(super) async fn of(kind: &str, order: &Order) -> Result<Answer> {
    match kind {
        "mutex" => mutex(order).await,
        "election" => resign(order).await,
        "queue" => queue(order).await,
        "view" => view(order).await,
        "change" => change(order).await,
        "join" => join(order).await,
        "publish" => publish(order).await,
        _ => bail!("bare sockets do not support {kind}"),
    }
}

/// Measures contention for a mutex. With one client: a create and a listing in one write, then the delete.
/// With `drop` the delete is sent together with the next create. With more `clients`, each client watches the
/// node before its own and lists again when that node is deleted.
async fn mutex(order: &Order) -> Result<Answer> {
    create_folder(order, &order.path).await?;
    let (mut crowd, folder) = (Crowd::default(), &order.path);
    match order.count("clients") {
        1 => {
            let drops = order.number("drop") > 0;
            crowd.spawn(contend(session(order).await?, folder.clone(), drops, crowd.done()));
        }
        clients => {
            for _ in 0..clients {
                crowd.spawn(wait_in_line(session(order).await?, folder.clone(), crowd.done()));
            }
        }
    }
    crowd.measure(order).await
}

async fn wait_in_line(mut session: Bare, folder: String, done: Done) -> Result<()> {
    loop {
        session.push(&contender(&folder));
        session.push(&children(&folder, false));
        session.flush().await?;
        let path = created(session.reply().await?)?;
        let mut names = listed(session.reply().await?)?;
        while let Some(before) = predecessor(&path, &names) {
            session.push(&data(&format!("{folder}/{before}"), true));
            session.flush().await?;
            if session.found().await?.is_some() {
                session.event().await?;
            }
            names = listed(session.call(&children(&folder, false)).await?)?;
        }
        done.add(1);
        session.call(&delete(&path)).await?;
    }
}

/// Returns the name in `names` that directly precedes the name of `path`. All names begin alike.
fn predecessor<'a>(path: &str, names: &'a [String]) -> Option<&'a String> {
    let (_, own) = path.rsplit_once('/')?;
    names.iter().filter(|name| name.as_str() < own).max()
}

async fn contend(mut session: Bare, folder: String, drops: bool, done: Done) -> Result<()> {
    let mut dropped: Option<String> = None;
    loop {
        if let Some(path) = &dropped {
            session.push(&delete(path));
        }
        session.push(&contender(&folder));
        session.push(&children(&folder, false));
        session.flush().await?;
        if dropped.take().is_some() {
            session.reply().await?;
        }
        let path = created(session.reply().await?)?;
        session.reply().await?;
        done.add(1);
        match drops {
            true => dropped = Some(path),
            false => session.call(&delete(&path)).await.map(drop)?,
        }
    }
}

/// Measures two candidates: a delete, its event at the other candidate, and the listing that shows the other
/// candidate that it leads. The first candidate then joins again behind it.
async fn resign(order: &Order) -> Result<Answer> {
    let folder = &order.path;
    create_folder(order, folder).await?;
    let (mut leader, mut next) = (session(order).await?, session(order).await?);
    let mut leading = created(leader.call(&contender(folder)).await?)?;
    let mut waiting = created(next.call(&contender(folder)).await?)?;
    next.call(&data(&leading, true)).await?;

    let (mut times, measured) = (Vec::new(), Measured::start());
    while times.len() < order.count("samples") {
        tokio::time::sleep(PAUSE).await;
        let called = Instant::now();
        let leads = async {
            next.event().await?;
            next.call(&children(folder, false)).await?;
            anyhow::Ok(Instant::now())
        };
        let resign = delete(&leading);
        let (leads, resigned) = tokio::join!(leads, leader.call(&resign));
        resigned?;
        times.push(leads? - called);

        leading = created(leader.call(&contender(folder)).await?)?;
        leader.call(&children(folder, false)).await?;
        leader.call(&data(&waiting, true)).await?;
        std::mem::swap(&mut leader, &mut next);
        std::mem::swap(&mut leading, &mut waiting);
    }
    answer(measured, &times, [leader, next]).await
}

/// Measures a queue. One session puts with a create. Another session takes: it claims with an ephemeral node,
/// sent together with the read, and then deletes both nodes. One listing serves all items that exist.
async fn queue(order: &Order) -> Result<Answer> {
    let (items, claims) = (format!("{}/items", order.path), format!("{}/claims", order.path));
    create_folder(order, &items).await?;
    create_folder(order, &claims).await?;
    let (mut crowd, room) = (Crowd::default(), Arc::new(Semaphore::new(ROOM)));
    crowd.spawn(put(session(order).await?, format!("{items}/item-"), Arc::clone(&room)));
    crowd.spawn(take(session(order).await?, items, claims, room, crowd.done()));
    crowd.measure(order).await
}

async fn put(mut session: Bare, prefix: String, room: Arc<Semaphore>) -> Result<()> {
    let put = create(&prefix, Bytes::from(ITEM), CreateMode::PersistentSequential);
    loop {
        room.acquire().await?.forget();
        session.call(&put).await?;
    }
}

async fn take(
    mut session: Bare,
    items: String,
    claims: String,
    room: Arc<Semaphore>,
    done: Done,
) -> Result<()> {
    loop {
        let mut names = listed(session.call(&children(&items, true)).await?)?;
        if names.is_empty() {
            session.event().await?;
        }
        names.sort_unstable();
        for name in names {
            let (item, claim) = (format!("{items}/{name}"), format!("{claims}/{name}"));
            session.push(&create(&claim, Bytes::new(), CreateMode::Ephemeral));
            session.push(&data(&item, false));
            session.flush().await?;
            session.reply().await?;
            session.reply().await?;
            let both = [item, claim].map(|path| MultiOp::Delete { path, version: -1 });
            session.call(&Request::Multi(both.into())).await?;
            done.add(1);
            room.add_permits(1);
        }
    }
}

/// Lists all names and reads all nodes, each time in a new session.
async fn view(order: &Order) -> Result<Answer> {
    let folder = format!("{}/{SERVICE}", order.path);
    let (mut times, measured) = (Vec::new(), Measured::start());
    while times.len() < order.count("samples") {
        let mut session = session(order).await?;
        let called = Instant::now();
        let names = listed(session.call(&children(&folder, false)).await?)?;
        let mut shown = 0;
        for names in names.chunks(NODES_PER_READ) {
            let reads = names.iter().map(|name| MultiOp::GetData { path: format!("{folder}/{name}") });
            let Response::Multi(read) = session.call(&Request::MultiRead(reads.collect())).await? else {
                bail!("the response to a multi-read has the wrong type");
            };
            shown += read.iter().filter(|one| matches!(one, MultiResult::Data { .. })).count();
        }
        times.push(called.elapsed());
        let wanted = order.count("instances");
        ensure!(shown == wanted, "the view shows {shown} of {wanted} instances");
        session.close().await?;
    }
    answer(measured, &times, []).await
}

/// Measures a write, its event in another session, and the read there.
async fn change(order: &Order) -> Result<Answer> {
    let (mut viewer, mut registrar) = (session(order).await?, session(order).await?);
    let folder = format!("{}/{SERVICE}", order.path);
    let (node, value) = (format!("{folder}/{INSTANCE}"), instance_data(&mut viewer, &folder).await?);
    registrar.call(&create(&node, value.clone(), CreateMode::Ephemeral)).await?;
    viewer.call(&data(&node, true)).await?;
    let set = Request::SetData { path: node.clone(), data: Some(value), version: -1 };

    let (mut times, measured) = (Vec::new(), Measured::start());
    while times.len() < order.count("samples") {
        let called = Instant::now();
        let seen = async {
            viewer.event().await?;
            viewer.call(&data(&node, true)).await?;
            anyhow::Ok(Instant::now())
        };
        let (seen, set) = tokio::join!(seen, registrar.call(&set));
        set?;
        times.push(seen? - called);
    }
    answer(measured, &times, [viewer, registrar]).await
}

/// Measures a create, its event in another session, the listing there unless the watch is `persistent`, and
/// the read.
async fn join(order: &Order) -> Result<Answer> {
    let (mut viewer, mut registrar) = (session(order).await?, session(order).await?);
    let (folder, lists) = (format!("{}/{SERVICE}", order.path), order.number("persistent") == 0);
    let (node, value) = (format!("{folder}/{INSTANCE}"), instance_data(&mut viewer, &folder).await?);
    let (register, list) = (create(&node, value, CreateMode::Ephemeral), children(&folder, true));
    let follow = Request::AddWatch { path: folder, mode: WatchMode::PersistentRecursive };
    viewer.call(if lists { &list } else { &follow }).await?;

    let (mut times, measured) = (Vec::new(), Measured::start());
    while times.len() < order.count("samples") {
        let called = Instant::now();
        let seen = async {
            viewer.event().await?;
            if lists {
                viewer.call(&list).await?;
            }
            viewer.call(&data(&node, lists)).await?;
            anyhow::Ok(Instant::now())
        };
        let (seen, registered) = tokio::join!(seen, registrar.call(&register));
        registered?;
        times.push(seen? - called);

        registrar.call(&delete(&node)).await?;
        viewer.event().await?;
        if lists {
            // The node's event came first, and this is the event of the folder.
            viewer.event().await?;
            viewer.call(&list).await?;
        }
    }
    answer(measured, &times, [viewer, registrar]).await
}

/// Measures one writer of a node, and `subscribers` that read the node when the event arrives.
async fn publish(order: &Order) -> Result<Answer> {
    create_folder(order, &order.path).await?;
    let (mut publisher, mut tasks) = (session(order).await?, JoinSet::new());
    let ((seen, received), last) = (unbounded_channel(), order.number("samples"));
    for _ in 0..order.count("subscribers") {
        let mut subscriber = session(order).await?;
        subscriber.call(&data(&order.path, true)).await?;
        tasks.spawn(follow(subscriber, order.path.clone(), last, seen.clone()));
    }

    let (mut deliveries, measured) =
        (DeliveryTimes::by(received, order.count("subscribers")), Measured::start());
    for value in 1..=last {
        let (path, text) = (order.path.clone(), Bytes::from(value.to_string()));
        let called = Instant::now();
        publisher.call(&Request::SetData { path, data: Some(text), version: -1 }).await?;
        deliveries.all(value, called).await?;
    }
    let mut answer = measured.stop(last).await;
    deliveries.add_to(&mut answer);
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    publisher.close().await?;
    Ok(answer)
}

async fn follow(
    mut session: Bare,
    path: String,
    last: u64,
    seen: UnboundedSender<(u64, Instant)>,
) -> Result<()> {
    let mut seen_value = 0;
    while seen_value < last {
        session.event().await?;
        seen_value = std::str::from_utf8(&read(session.call(&data(&path, true)).await?)?)?.parse()?;
        report_seen(&seen, seen_value);
    }
    session.close().await
}

async fn session(order: &Order) -> Result<Bare> {
    Bare::connect(&order.connect).await
}

/// Creates a node and its parents.
async fn create_folder(order: &Order, path: &str) -> Result<()> {
    let client = client(order).await?;
    client.create(path, "", Mode::Persistent).await?;
    client.close().await;
    Ok(())
}

/// Returns the figures of the measured times, and closes the sessions.
async fn answer(
    measured: Measured,
    times: &[std::time::Duration],
    sessions: impl IntoIterator<Item = Bare, IntoIter: Send>,
) -> Result<Answer> {
    let mut answer = measured.stop(times.len() as u64).await;
    add_times(&mut answer, "", times);
    for session in sessions {
        session.close().await?;
    }
    Ok(answer)
}

/// Returns the data of an existing instance.
async fn instance_data(session: &mut Bare, folder: &str) -> Result<Bytes> {
    let names = listed(session.call(&children(folder, false)).await?)?;
    let name = names.first().context("there is no instance")?;
    read(session.call(&data(&format!("{folder}/{name}"), false)).await?)
}

fn contender(folder: &str) -> Request {
    create(&format!("{folder}/{CONTENDER}"), Bytes::new(), CreateMode::EphemeralSequential)
}

fn create(path: &str, data: Bytes, mode: CreateMode) -> Request {
    Request::Create(Create::new(path.to_owned(), data, Acl::open(), mode, 0))
}

fn delete(path: &str) -> Request {
    Request::Delete { path: path.to_owned(), version: -1 }
}

fn children(path: &str, watch: bool) -> Request {
    Request::GetChildren2 { path: path.to_owned(), watch }
}

fn data(path: &str, watch: bool) -> Request {
    Request::GetData { path: path.to_owned(), watch }
}

fn created(response: Response) -> Result<String> {
    let Response::Created { path, .. } = response else { bail!("unexpected response {response:?}") };
    Ok(path)
}

fn listed(response: Response) -> Result<Vec<String>> {
    let Response::Children { names, .. } = response else { bail!("unexpected response {response:?}") };
    Ok(names)
}

fn read(response: Response) -> Result<Bytes> {
    let Response::Data { data: Some(data), .. } = response else { bail!("unexpected response {response:?}") };
    Ok(data)
}
