use super::tree::{NOW_MS, SESSION, Tree};
use super::{ADDRESS, DOCENT, HEX, UUID};
use crate::{Kind, Limits, Queue, QueueLayout, Recipe, Writer};
use docent_core::recipe::since_1970_ms;

fn queue(recipe: Recipe) -> Queue {
    match recipe {
        Recipe::Queue(queue) => queue,
        other => panic!("not a queue: {other:?}"),
    }
}

fn head(queue: &Queue) -> (&str, Option<i64>) {
    let head = queue.head.as_ref().unwrap();
    assert!(head.size.is_some() && head.since.is_some());
    (&head.name, head.priority)
}

#[test]
fn docents_queue_reports_depth_claims_dead_letters_and_idle_consumers() {
    let tree = Tree::default()
        .node("/q/items/item-0000000005", "x")
        .node("/q/items/item-p7ffffffb-0000000006", "xy")
        .node("/q/items/item-p7ffffffa-0000000007", "xy")
        .node("/q/items/item-t00000000ffffffff-0000000001", "later")
        .node("/q/items/stranger", "")
        .ephemeral("/q/claims/item-p7ffffffa-0000000007", DOCENT)
        .node("/q/dead/letter-0000000000", "{}\n")
        .ephemeral(&format!("/q/idle/_c_{UUID}-idle-0000000002"), DOCENT)
        .ephemeral(&format!("/q/idle/_c_{UUID}-idle-0000000001"), DOCENT);
    let report = tree.report("/q");
    assert_eq!(report.writers, [Writer::Docent]);
    let queue = queue(report.recipe);
    assert_eq!((queue.layout, queue.depth, queue.delayed), (QueueLayout::Docent, 4, 1));
    assert_eq!((queue.claimed, queue.dead, queue.idle), (Some(1), Some(1), Some(2)));
    assert_eq!(head(&queue), ("item-p7ffffffb-0000000006", Some(-5)));
    assert_eq!(queue.head.as_ref().unwrap().size, Some(2));
    assert_eq!(queue.claims[0].identity.as_ref().unwrap().as_str(), Some(DOCENT));
    assert!(queue.claims[0].session.is_some());
    let consumers: Vec<_> = queue.consumers.iter().map(|one| one.number.unwrap()).collect();
    assert_eq!(consumers, [1, 2]);
}

#[test]
fn dead_letters_are_listed_oldest_first_with_their_reasons() {
    let letter = |detail: &str| {
        format!(
            r#"{{"version":1,"reason":"rejected","detail":"{detail}","deliveries":3,"item":"item-0000000009"}}"#
        ) + "\nxyz"
    };
    let tree = Tree::default()
        .node("/q/dead/letter-0000000012", "junk")
        .node("/q/dead/letter-0000000003", letter("no such customer"))
        .node("/q/dead/stranger", letter("none of ours"))
        .node("/q/dead/letter-0000000011", letter("\u{202e}é"));
    let queue = queue(tree.report("/q").recipe);
    let [first, second, junk] = &queue.dead_letters[..] else { panic!("{queue:?}") };
    assert_eq!((first.name.as_str(), first.deliveries), ("letter-0000000003", Some(3)));
    assert_eq!(
        (first.reason.as_deref(), first.detail.as_deref()),
        (Some("rejected"), Some("no such customer"))
    );
    assert_eq!(first.item.as_deref(), Some("item-0000000009"));
    assert!(first.size > Some(3) && first.since.is_some());
    assert_eq!(second.detail.as_deref(), Some("\u{202e}é"));
    assert_eq!((junk.size, &junk.reason, &junk.detail, &junk.item), (Some(4), &None, &None, &None));
}

#[test]
fn dead_letters_beyond_the_limit_are_counted_as_omitted() {
    let letters = (0..7).map(|number| format!("/q/dead/letter-{number:010}"));
    let tree = letters.fold(Tree::default(), |tree, path| tree.node(&path, "{}\n"));
    let report = tree.report_within("/q", &Limits::default().dead_letters(5));
    assert_eq!((report.left_out.nodes, report.is_complete()), (2, false));
    let queue = queue(report.recipe);
    assert_eq!((queue.dead, queue.dead_letters.len()), (Some(7), 5));
    assert_eq!(queue.dead_letters[4].name, "letter-0000000004");
}

#[test]
fn curators_queues_are_recognised_by_their_names() {
    let plain = with(&["queue-0000000010", "queue-0000000009", "foo"]);
    assert_eq!((plain.layout, plain.depth), (QueueLayout::Curator, 2));
    assert_eq!(head(&plain), ("queue-0000000009", None));
    assert_eq!((plain.claimed, plain.dead, plain.idle), (None, None, None));
    let ids = with(&["queue-|b|0000000002", "queue-|a|0000000003"]);
    assert_eq!(head(&ids), ("queue-|b|0000000002", None));
    let priorities = with(&["queue-1000000050000000000", "queue-0FFFFFFFF0000000001"]);
    assert_eq!(head(&priorities), ("queue-0FFFFFFFF0000000001", Some(-1)));
    // Requeued items have no priority, and sort before all others.
    let requeued = with(&["queue-0FFFFFFFF0000000001", "queue-0000000007"]);
    assert_eq!(head(&requeued), ("queue-0000000007", None));
}

/// Returns a queue with items of these names.
fn with(names: &[&str]) -> Queue {
    let nodes = names.iter().map(|name| format!("/q/{name}"));
    queue(nodes.fold(Tree::default(), |tree, path| tree.node(&path, "x")).report("/q").recipe)
}

/// Returns the name, in Curator's delay queue, of an item that is due this many milliseconds from now.
fn delayed(after_ms: i64, number: u32) -> String {
    format!("queue-|{:08X}|{number:010}", NOW_MS.checked_add_signed(after_ms).unwrap())
}

#[test]
fn curators_delayed_items_are_counted_and_the_next_time_is_reported() {
    let names = [delayed(5_000, 0), delayed(3_500, 1), delayed(0, 2), delayed(-1, 3)];
    let queue = with(&names.each_ref().map(String::as_str));
    assert_eq!((queue.depth, queue.delayed), (4, 2));
    assert_eq!(queue.next_due.map(since_1970_ms), Some(NOW_MS + 3_500));
    assert_eq!(head(&queue), (names[3].as_str(), None));
    let waiting = with(&[&names[1]]);
    assert_eq!((waiting.head, waiting.delayed), (None, 1));
    let latest = with(&["queue-|7FFFFFFFFFFFFFFF|0000000001"]);
    assert_eq!((latest.delayed, latest.next_due.map(since_1970_ms)), (1, Some(i64::MAX.cast_unsigned())));
    // Ids that may be numbers are not times.
    let ids = with(&["queue-|20391231000|0000000000", "queue-|20391231001|0000000001"]);
    assert_eq!((ids.delayed, ids.next_due), (0, None));
}

#[test]
fn docents_next_due_item_is_reported() {
    let tree = Tree::default().node("/q/items/item-t00000000ffffffff-0000000001", "later");
    let next = queue(tree.node("/q/idle", "").report("/q").recipe).next_due;
    assert_eq!(next.map(since_1970_ms), Some(0xffff_ffff));
}

#[test]
fn claims_of_curators_queue_are_recognised_below_and_next_to_it() {
    for lock_path in ["/app/mails/locks", "/app/mails-lock", "/app/mailsLocks"] {
        let tree = Tree::default()
            .node("/app/mails/queue-0000000001", "x")
            .node("/app/mails/queue-0000000002", "x")
            .ephemeral(&format!("{lock_path}/queue-0000000001"), ADDRESS);
        let queue = queue(tree.report("/app/mails").recipe);
        assert_eq!((queue.depth, queue.claimed), (2, Some(1)), "{lock_path}");
        assert_eq!(
            (queue.claims[0].item.as_str(), queue.claims[0].session),
            ("queue-0000000001", Some(SESSION))
        );
        assert_eq!(head(&queue), ("queue-0000000002", None));
    }
}

#[test]
fn possible_claims_of_another_queue_are_not_reported_as_claims() {
    for other in [
        Tree::default().ephemeral("/app/orders-lock/queue-0000000001", ADDRESS),
        Tree::default().node("/app/mails-lock/queue-0000000001", ADDRESS),
        Tree::default().ephemeral(&format!("/app/mails-lock/_c_{UUID}-lock-0000000001"), ADDRESS),
        Tree::default().node("/app/mails-lock", ""),
    ] {
        let tree = other.node("/app/mails/queue-0000000001", "x");
        assert_eq!(queue(tree.report("/app/mails").recipe).claimed, None);
    }
}

#[test]
fn a_lock_path_of_curators_queue_is_reported_as_claims() {
    let tree = Tree::default().ephemeral("/locks/queue-0000000001", ADDRESS);
    let queue = queue(tree.report("/locks").recipe);
    assert_eq!((queue.layout, queue.depth, queue.claimed), (QueueLayout::CuratorClaims, 0, Some(1)));
    assert_eq!((&queue.head, queue.claims[0].session), (&None, Some(SESSION)));
}

#[test]
fn the_simple_queue_and_kazoos_are_recognised_by_their_names() {
    let simple = Tree::default().node("/q/qn-0000000002", "x").node("/q/qn-0000000001", "x");
    let simple = queue(simple.report("/q").recipe);
    assert_eq!((simple.layout, head(&simple)), (QueueLayout::Simple, ("qn-0000000001", None)));
    let kazoo = Tree::default().node("/q/entry-100-0000000000", "x").node("/q/entry-007-0000000001", "x");
    let kazoo = queue(kazoo.report("/q").recipe);
    assert_eq!((kazoo.layout, head(&kazoo)), (QueueLayout::Kazoo, ("entry-007-0000000001", Some(7))));
}

#[test]
fn kazoos_locking_queue_reports_taken_items() {
    let tree = Tree::default()
        .node("/q/entries/entry-100-0000000000", "x")
        .node("/q/entries/entry-100-0000000001", "x")
        .ephemeral("/q/taken/entry-100-0000000000", HEX);
    let queue = queue(tree.report("/q").recipe);
    assert_eq!((queue.layout, queue.depth, queue.claimed), (QueueLayout::KazooLocking, 2, Some(1)));
    assert_eq!(head(&queue), ("entry-100-0000000001", Some(100)));
}

#[test]
fn a_queue_whose_items_are_all_taken_has_no_head() {
    let tree = Tree::default()
        .node("/q/items/item-0000000005", "x")
        .ephemeral("/q/claims/item-0000000005", ADDRESS)
        .node("/q/idle", "");
    let queue = queue(tree.report("/q").recipe);
    assert_eq!((queue.head, queue.depth, queue.claimed), (None, 1, Some(1)));
}

#[test]
fn folders_of_these_names_alone_are_no_queue() {
    let tree = Tree::default().node("/shop/items/cup", "").node("/list/queue-x", "").node("/list/qn-1", "");
    assert_eq!(tree.report("/shop").kind(), Kind::Plain);
    assert_eq!(tree.report("/list").kind(), Kind::Plain);
}
