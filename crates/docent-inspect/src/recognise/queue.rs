use super::contenders::holder;
use super::found::Found;
use super::items;
use crate::nodes::{Place, View, join};
use crate::report::{Claim, Contender, DeadLetter, NodeText, Queue, QueueItem, QueueLayout, Recipe, Writer};
use docent_core::Role;
use docent_core::recipe::since_1970_ms;
use docent_queue::internals::{IDLE, ItemName, LETTER, LetterHead, SIMPLE, Turns, number};
use std::collections::HashSet;
use std::time::{Duration, SystemTime};

/// Folders of Docent's queue.
const FOLDERS: [&str; 5] = ["items", "claims", "dead", "idle", "lock"];

/// Prefix of item names in Docent's queues.
const ITEM: &str = "item-";

/// Maximum number of claims and of idle consumers to read. Their number depends on the number of consumers.
const READ: usize = 1_000;

/// Recognises Docent's own queue.
pub(super) fn docent(place: &Place<'_>) -> Option<Found> {
    if !place.has_only(&FOLDERS) {
        return None;
    }
    let view = place.view;
    let names = |folder| place.names_below(folder);
    let items: Vec<_> =
        names("items").iter().filter_map(|name| ItemName::parse(name.clone(), ITEM)).collect();
    let letters = names("dead").iter().filter_map(|name| Some((number(name, LETTER)?, name.as_str())));
    let mut dead: Vec<_> = letters.collect();
    dead.sort_unstable();
    let mut idle: Vec<_> = names("idle").iter().filter_map(|name| parse_idle(name)).collect();
    let is_empty = items.is_empty() && dead.is_empty() && idle.is_empty();
    if is_empty && !(place.has("items") && place.has("idle") && names("items").is_empty()) {
        return None;
    }
    idle.sort_unstable();
    let claimed: HashSet<_> = names("claims").iter().map(String::as_str).collect();
    let turns = Turns::at(since_1970_ms(view.now()), items.iter().cloned());
    let head = turns.ready.iter().find(|item| !claimed.contains(item.text.as_str()));
    let queue = Queue {
        layout: QueueLayout::Docent,
        depth: items.len(),
        delayed: items.len() - turns.ready.len(),
        next_due: turns.next.and_then(time),
        head: head.map(|head| item(view, &place.child("items"), &head.text, Some(head.priority.into()))),
        claimed: Some(claimed.len()),
        claims: claims(view, &place.child("claims"), names("claims")),
        idle: Some(idle.len()),
        consumers: consumers(place, &idle),
        dead: Some(dead.len()),
        dead_letters: dead_letters(view, &place.child("dead"), &dead),
    };
    Some(Found::new(Recipe::Queue(queue)).by([Writer::Docent]))
}

/// Returns a time in milliseconds since 1970, or `None` if this platform cannot represent it.
pub(super) fn time(ms: u64) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(ms))
}

/// Returns the number and the name of an idle consumer's node.
fn parse_idle(name: &str) -> Option<(i32, &str)> {
    let (_, digits) = name.rsplit_once(IDLE)?;
    Some((number(digits, "")?, name))
}

/// Describes an item by its node in `folder`.
pub(super) fn item(view: &View<'_>, folder: &str, name: &str, priority: Option<i64>) -> QueueItem {
    let stat = view.data(&join(folder, name)).map(|data| data.stat);
    QueueItem {
        name: name.to_owned(),
        priority,
        size: stat.map(|stat| stat.data_length),
        since: stat.map(|stat| view.since(stat.created)),
    }
}

/// Describes the claims in `folder`.
pub(super) fn claims(view: &View<'_>, folder: &str, names: &[String]) -> Vec<Claim> {
    let claim = |name: &String| {
        let data = view.data(&join(folder, name));
        let bytes = data.and_then(|data| data.bytes.clone()).filter(|bytes| !bytes.is_empty());
        Claim {
            item: name.clone(),
            since: data.map(|data| view.since(data.stat.created)),
            session: data.and_then(|data| data.stat.owner),
            identity: bytes.map(NodeText::new),
        }
    };
    view.first(names, READ).iter().map(claim).collect()
}

fn consumers(place: &Place<'_>, idle: &[(i32, &str)]) -> Vec<Contender> {
    let folder = place.child("idle");
    let consumer = |(number, name): &(i32, &str)| Contender {
        number: Some(*number),
        role: Role::Exclusive,
        holds: false,
        held: None,
        writer: Writer::Docent,
        ..holder(place, name, place.view.data(&join(&folder, name)))
    };
    place.view.first(idle, READ).iter().map(consumer).collect()
}

fn dead_letters(view: &View<'_>, folder: &str, letters: &[(i32, &str)]) -> Vec<DeadLetter> {
    let letter = |(_, name): &(i32, &str)| {
        let data = view.data(&join(folder, name));
        let read = data.and_then(|data| data.bytes.as_ref()).map(|bytes| LetterHead::read(bytes).0);
        let head = read.filter(|head| !head.reason.name().is_empty());
        DeadLetter {
            name: (*name).to_owned(),
            size: data.map(|data| data.stat.data_length),
            since: data.map(|data| view.since(data.stat.created)),
            reason: head.as_ref().map(|head| head.reason.name().to_owned()),
            deliveries: head.as_ref().and_then(|head| head.deliveries),
            item: head.as_ref().map(|head| head.item.clone()),
            detail: head.map(|head| head.detail),
        }
    };
    view.first(letters, view.limits().dead_letters).iter().map(letter).collect()
}

/// Recognises kazoo's queue with claims.
pub(super) fn kazoo_locking(place: &Place<'_>) -> Option<Found> {
    if !place.has("entries") || !place.has_only(&["entries", "taken"]) {
        return None;
    }
    let entries = place.folder("entries")?;
    let mut items: Vec<_> =
        entries.names.iter().filter_map(|name| Some((items::kazoo(name)?, name))).collect();
    items.sort_unstable();
    let taken = place.names_below("taken");
    // A folder of this name may hold anything.
    if items.is_empty() && !(entries.names.is_empty() && place.has("taken")) {
        return None;
    }
    let is_taken: HashSet<_> = taken.iter().collect();
    let head = items.iter().find(|(_, name)| !is_taken.contains(name));
    let queue = Queue {
        head: head
            .map(|((priority, _), name)| item(place.view, &place.child("entries"), name, Some(*priority))),
        claimed: Some(taken.len()),
        claims: claims(place.view, &place.child("taken"), taken),
        ..without_claims(QueueLayout::KazooLocking, items.len())
    };
    Some(Found::new(Recipe::Queue(queue)).by([Writer::Kazoo]))
}

/// Recognises queues without claims whose items are children of the node itself: the simple queue, and
/// kazoo's.
pub(super) fn flat(place: &Place<'_>) -> Option<Found> {
    type Parse = fn(&str) -> Option<items::Place>;
    let simple: Parse = |name| Some((0, number(name, SIMPLE)?.into()));
    let layouts: [(QueueLayout, Parse, Writer); 2] =
        [(QueueLayout::Simple, simple, Writer::Contrib), (QueueLayout::Kazoo, items::kazoo, Writer::Kazoo)];
    layouts.into_iter().find_map(|(layout, parse, writer)| {
        let items = place.names.iter().filter_map(|name| Some((parse(name)?, name)));
        let items: Vec<_> = items.collect();
        let ((priority, _), head) = items.iter().min()?;
        let priority = (layout == QueueLayout::Kazoo).then_some(*priority);
        let head = Some(item(place.view, place.path, head, priority));
        let queue = Queue { head, ..without_claims(layout, items.len()) };
        Some(Found::new(Recipe::Queue(queue)).by([writer]))
    })
}

pub(super) fn without_claims(layout: QueueLayout, depth: usize) -> Queue {
    Queue {
        layout,
        depth,
        delayed: 0,
        next_due: None,
        head: None,
        claimed: None,
        claims: Vec::new(),
        dead: None,
        dead_letters: Vec::new(),
        idle: None,
        consumers: Vec::new(),
    }
}
