use super::*;
use std::collections::BTreeSet;

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn key(key: &str) -> Arc<str> {
    Arc::from(key)
}

/// A cache of the children of `/r` before its first sync.
fn children() -> Nodes {
    Nodes::new(Keys::names("/r".to_owned()), 1)
}

/// A cache of the tree at `/r` before its first sync.
fn tree(max_depth: usize) -> Nodes {
    Nodes::new(Keys::paths("/r", "/r".to_owned()), max_depth)
}

fn data(name: &str, watch: bool) -> Option<Read> {
    Some(Read::One { key: key(name), kind: ReadKind::Data, watch })
}

/// Lists the children, after a watch on the folder fired.
fn listed(nodes: &mut Nodes, listing: &[&str]) -> Vec<Arc<str>> {
    nodes.enqueue(&key(""), ReadKind::Names);
    assert!(matches!(nodes.next(64), Some(Read::One { kind: ReadKind::Names, .. })));
    nodes.watched("", ReadKind::Names);
    nodes.listed(&key(""), names(listing))
}

/// Starts a sync of children, and lists them.
fn sync(nodes: &mut Nodes, listing: Vec<String>) -> Vec<Arc<str>> {
    nodes.begin_sync();
    assert!(matches!(nodes.next(64), Some(Read::One { kind: ReadKind::Names, .. })));
    nodes.watched("", ReadKind::Names);
    nodes.listed(&key(""), listing)
}

/// Answers all reads one by one with a version, and returns the keys.
fn read_all(nodes: &mut Nodes, version: Version) -> BTreeSet<String> {
    let mut read = BTreeSet::new();
    while let Some(Read::One { key, kind: ReadKind::Data, watch }) = nodes.next(1) {
        assert_eq!(nodes.watched(&key, ReadKind::Data), watch);
        nodes.read(&key, version, true);
        read.insert(key.to_string());
    }
    read
}

/// A cache of children after a sync, with `listing` as of transaction 1, all watched.
fn synced(listing: &[&str]) -> Nodes {
    let mut nodes = children();
    assert!(sync(&mut nodes, names(listing)).is_empty());
    read_all(&mut nodes, (1, 1));
    assert!(nodes.is_synced());
    nodes
}

#[test]
fn a_listing_reports_removed_children_and_has_new_ones_read() {
    let mut nodes = synced(&["a", "b", "c"]);
    let mut deleted = listed(&mut nodes, &["d", "b"]);
    deleted.sort();
    assert_eq!(deleted, [key("a"), key("c")]);
    assert_eq!(nodes.next(64), data("d", true));
    assert_eq!(nodes.next(64), None, "a known and watched child is not read again");
    assert!(listed(&mut nodes, &["b", "d"]).is_empty());
    assert_eq!(nodes.len(), 3, "with the folder");
}

#[test]
fn a_reordered_listing_is_no_change_and_a_single_added_or_removed_child_is_found() {
    let mut nodes = synced(&["a", "b", "c", "d"]);
    assert!(listed(&mut nodes, &["d", "b", "a", "c"]).is_empty());
    assert_eq!(nodes.next(64), None);
    assert_eq!(listed(&mut nodes, &["d", "b", "c"]), [key("a")]);
    assert_eq!(listed(&mut nodes, &["d", "b"]), [key("c")]);
    assert!(listed(&mut nodes, &["d", "x", "b"]).is_empty());
    assert_eq!(nodes.next(64), data("x", true));
    assert_eq!(nodes.next(64), None);
}

#[test]
fn a_removed_child_that_is_listed_again_at_the_same_position_is_read() {
    let mut nodes = synced(&["a", "b", "c"]);
    assert_eq!(nodes.deleted(&key("b"), ReadKind::Data), [key("b")]);
    assert!(listed(&mut nodes, &["a", "b", "c"]).is_empty());
    assert_eq!(nodes.next(64), data("b", true));
    assert_eq!(nodes.next(64), None);
}

proptest::proptest! {
    #[test]
    fn a_listing_has_the_same_result_as_a_check_of_every_name(
        listings in proptest::collection::vec(
            (proptest::collection::vec(0..12_u8, 0..12), proptest::option::of(0..12_u8), proptest::option::of(0..12_u8)),
            1..12,
        ),
        persistent: bool,
    ) {
        let mut nodes = synced(&[]);
        nodes.set_persistent(persistent);
        let mut known = BTreeSet::new();
        for (listing, deleted, created) in listings {
            let listing: BTreeSet<_> = listing.iter().map(u8::to_string).collect();
            let as_text: Vec<_> = listing.iter().map(String::as_str).collect();
            let mut found = listed(&mut nodes, &as_text);
            found.sort();
            let missing: Vec<_> = known.difference(&listing).map(|deleted: &String| key(deleted)).collect();
            proptest::prop_assert_eq!(found, missing);
            let mut read = BTreeSet::new();
            while let Some(Read::One { key, .. }) = nodes.next(1) {
                nodes.watched(&key, ReadKind::Data);
                nodes.read(&key, (1, 1), true);
                read.insert(key.to_string());
            }
            let new: BTreeSet<_> = listing.difference(&known).cloned().collect();
            proptest::prop_assert!(read.is_superset(&new) && read.is_subset(&listing), "{:?}", read);
            known = listing;
            if let Some(deleted) = deleted.map(|deleted| deleted.to_string()) {
                let was_known = known.remove(&deleted);
                proptest::prop_assert_eq!(nodes.deleted(&key(&deleted), ReadKind::Data).len(), usize::from(was_known));
            }
            if let Some(created) = created.map(|created| created.to_string()) {
                nodes.created(&created);
                let read = nodes.next(1);
                let is_it = matches!(&read, Some(Read::One { key, .. }) if **key == *created);
                proptest::prop_assert!(is_it, "{:?}", read);
                nodes.watched(&created, ReadKind::Data);
                nodes.read(&key(&created), (1, 1), true);
                known.insert(created);
            }
        }
    }
}

#[test]
fn a_child_that_was_never_read_is_not_reported_as_removed() {
    let mut nodes = synced(&[]);
    listed(&mut nodes, &["a"]);
    assert!(listed(&mut nodes, &[]).is_empty());
    assert_eq!(nodes.next(64), None);
}

#[test]
fn only_a_different_version_is_a_change() {
    let mut nodes = synced(&["a"]);
    assert!(!nodes.read(&key("a"), (1, 1), true));
    assert!(nodes.read(&key("a"), (1, 2), true), "changed");
    assert!(nodes.read(&key("a"), (3, 3), true), "created again");
    assert!(!nodes.read(&key("x"), (1, 1), true), "a name that is not listed is not a child");
}

#[test]
fn many_nodes_are_read_together_and_watched_one_by_one_if_their_transaction_is_unknown() {
    let mut nodes = children();
    sync(&mut nodes, (0..200).map(|n| n.to_string()).collect());
    let (mut together, mut alone) = (0, 0);
    while let Some(read) = nodes.next(50) {
        match read {
            Read::Several(keys) => {
                assert!(keys.len() <= 50);
                together += keys.len();
                keys.iter().for_each(|key| assert!(nodes.read(key, (1, 1), true)));
            }
            Read::Watch { .. } | Read::Root => panic!("the transaction of these nodes is unknown"),
            Read::One { key, watch, .. } => {
                assert!(watch && nodes.watched(&key, ReadKind::Data));
                alone += 1;
                nodes.read(&key, (1, 1), true);
            }
        }
    }
    // The last few are read and watched in one request.
    assert_eq!((together, alone), (150, 200));
}

#[test]
fn many_nodes_known_as_of_a_transaction_are_watched_with_few_requests() {
    let mut nodes = children();
    sync(&mut nodes, (0..2_000).map(|n| n.to_string()).collect());
    let (mut zxid, mut armed, mut requests) = (7, 0, 0);
    while let Some(read) = nodes.next(50) {
        match read {
            Read::Several(keys) => {
                nodes.as_of(zxid);
                zxid += 1;
                keys.iter().for_each(|key| assert!(nodes.read(key, (1, 1), true)));
            }
            Read::One { key, .. } => {
                assert!(nodes.watched(&key, ReadKind::Data) && nodes.read(&key, (1, 1), true));
            }
            Read::Watch { keys, since } => {
                assert!(since >= 7, "no child is older than its own read");
                assert!(nodes.is_synced(), "a sync reads first");
                requests += 1;
                armed += keys.len();
                keys.iter().for_each(|key| assert!(nodes.armed(key)));
            }
            Read::Root => panic!("the root exists"),
        }
    }
    assert_eq!((armed, requests), (1_950, 4));
}

/// Children `0` to `69`, all but the first ten watched; those are asked for a watch.
fn arming() -> (Nodes, Vec<Arc<str>>) {
    let mut nodes = children();
    sync(&mut nodes, (0..70).map(|n| n.to_string()).collect());
    nodes.as_of(7);
    let Some(Read::Several(keys)) = nodes.next(10) else { panic!("expected one read of many nodes") };
    keys.iter().for_each(|key| assert!(nodes.read(key, (1, 1), true)));
    while nodes.queues.unread.front().is_some() {
        let Some(Read::One { key, .. }) = nodes.next(1) else { panic!("expected a read of one node") };
        assert!(nodes.watched(&key, ReadKind::Data) && nodes.read(&key, (1, 1), true));
    }
    assert_eq!(nodes.next(1), Some(Read::Watch { keys: keys.clone(), since: 7 }));
    (nodes, keys)
}

#[test]
fn a_watch_that_could_not_be_set_alone_is_set_by_a_read() {
    let (mut nodes, keys) = arming();
    keys.iter().for_each(|key| nodes.not_armed(key));
    assert_eq!(
        nodes.next(10),
        Some(Read::One { key: Arc::clone(&keys[0]), kind: ReadKind::Data, watch: true })
    );
}

/// A child `a` that is known as of transaction 7, and has no watch.
fn unwatched() -> Nodes {
    let mut nodes = children();
    sync(&mut nodes, names(&["a"]));
    nodes.as_of(7);
    assert_eq!(nodes.next(64), data("a", true));
    assert!(nodes.read(&key("a"), (1, 1), true));
    nodes
}

/// Starts a sync, and takes its listing as requested.
fn begin_sync(nodes: &mut Nodes) {
    nodes.begin_sync();
    assert!(matches!(nodes.next(64), Some(Read::One { kind: ReadKind::Names, .. })));
}

#[test]
fn a_sync_reads_a_node_that_was_being_armed_when_it_began() {
    for is_armed in [true, false] {
        let mut nodes = unwatched();
        assert_eq!(nodes.next(64), Some(Read::Watch { keys: vec![key("a")], since: 7 }));
        begin_sync(&mut nodes);
        nodes.listed(&key(""), names(&["a"]));
        assert_eq!(nodes.next(64), data("a", true));
        // The task drops the request for the watch. Its answer must not count as that of the read.
        if is_armed {
            assert!(nodes.armed(&key("a")));
        } else {
            nodes.not_armed(&key("a"));
        }
        assert!(!nodes.is_synced(), "the node was not read");
        assert_eq!(nodes.next(64), data("a", !is_armed));
        assert!(nodes.read(&key("a"), (1, 8), true));
        assert!(nodes.is_synced());
    }
}

#[test]
fn a_sync_sets_no_watches_before_its_end() {
    let mut nodes = unwatched();
    begin_sync(&mut nodes);
    assert_eq!(nodes.next(64), data("a", true));
    nodes.as_of(8);
    nodes.read(&key("a"), (1, 1), true);
    assert_eq!(nodes.next(64), None, "the listing may find other nodes");
    nodes.listed(&key(""), names(&["a"]));
    assert!(nodes.is_synced());
    assert_eq!(nodes.next(64), Some(Read::Watch { keys: vec![key("a")], since: 8 }));
}

#[test]
fn children_that_are_known_are_armed_while_the_folder_cannot_be_listed() {
    let mut nodes = unwatched();
    begin_sync(&mut nodes);
    assert!(nodes.refused(&key(""), ReadKind::Names));
    assert_eq!(nodes.next(64), data("a", true));
    nodes.read(&key("a"), (1, 1), true);
    assert!(nodes.is_root_refused());
    assert_eq!(nodes.next(64), Some(Read::Watch { keys: vec![key("a")], since: 7 }));
}

#[test]
fn a_folder_that_was_refused_is_listed_with_a_watch_and_the_sync_waits_for_what_it_finds() {
    let mut nodes = synced(&["a"]);
    let listing = |watch| Some(Read::One { key: key(""), kind: ReadKind::Names, watch });
    nodes.enqueue(&key(""), ReadKind::Names);
    assert_eq!(nodes.next(64), listing(false), "the folder has a watch");
    assert!(nodes.refused(&key(""), ReadKind::Names));
    nodes.enqueue_for_sync(&key(""), ReadKind::Names);
    assert_eq!(nodes.next(64), listing(true));
    assert!(!nodes.is_synced());
    nodes.listed(&key(""), names(&["a", "b"]));
    assert!(!nodes.is_root_refused() && !nodes.is_synced());
    assert_eq!(read_all(&mut nodes, (2, 2)), BTreeSet::from(["b".to_owned()]));
    assert!(nodes.is_synced());
}

#[test]
fn a_folder_created_during_a_listing_that_finds_none_is_listed_again() {
    let mut nodes = synced(&["a"]);
    nodes.set_persistent(true);
    nodes.enqueue(&key(""), ReadKind::Names);
    assert!(nodes.next(64).is_some());
    // The event of the creation is processed before the answer, which is older.
    nodes.enqueue(&key(""), ReadKind::Names);
    assert_eq!(nodes.deleted(&key(""), ReadKind::Names), [key("a")]);
    assert_eq!(nodes.next(64), Some(Read::One { key: key(""), kind: ReadKind::Names, watch: false }));
}

#[test]
fn the_root_of_a_tree_created_during_a_read_that_finds_none_is_read_again() {
    let mut nodes = synced_tree(1);
    nodes.set_persistent(true);
    nodes.enqueue(&key("/r"), ReadKind::Data);
    let Some(Read::One { key: requested, .. }) = nodes.next(64) else { panic!("expected a read") };
    nodes.created("/r");
    assert!(!nodes.is_current(&requested), "the answer is about the previous node");
    assert_eq!(nodes.next(64), data("/r", false));
}

#[test]
fn a_sync_waits_for_a_node_that_was_created_again_while_it_was_listed() {
    let mut nodes = synced_tree(9);
    nodes.set_persistent(true);
    assert_eq!(requested(&mut nodes), ["Names /r/a"]);
    nodes.created("/r/a");
    assert!(!nodes.is_synced());
    assert_eq!(requested(&mut nodes), ["Data /r/a"]);
    nodes.read(&key("/r/a"), (5, 5), true);
    assert!(nodes.is_synced());
}

#[test]
fn a_child_created_while_the_folder_is_listed_stays_though_the_listing_is_older() {
    let mut nodes = synced(&["a"]);
    nodes.set_persistent(true);
    nodes.enqueue(&key(""), ReadKind::Names);
    assert!(nodes.next(1).is_some());
    nodes.created("b");
    assert!(nodes.listed(&key(""), names(&["a"])).is_empty());
    let Some(Read::One { key: b, watch: false, .. }) = nodes.next(1) else { panic!("expected a read") };
    // The node is deleted and re-created: the answer to that read is about the previous node.
    nodes.created("b");
    assert!(!nodes.is_current(&b));
    let Some(Read::One { key: b, .. }) = nodes.next(1) else { panic!("expected a second read") };
    assert!(nodes.is_current(&b) && nodes.read(&b, (5, 5), true));
    assert_eq!(listed(&mut nodes, &["a"]), [key("b")], "a later listing counts");
}

#[test]
fn a_known_child_that_was_re_created_survives_one_listing_only() {
    let mut nodes = synced(&["a", "b"]);
    nodes.set_persistent(true);
    nodes.enqueue(&key(""), ReadKind::Names);
    assert!(nodes.next(1).is_some());
    nodes.created("b");
    assert!(nodes.listed(&key(""), names(&["a"])).is_empty());
    assert_eq!(listed(&mut nodes, &["a"]), [key("b")]);
}

#[test]
fn a_sync_waits_for_a_child_that_was_created_again_while_it_was_read() {
    let mut nodes = synced(&["a"]);
    nodes.set_persistent(true);
    sync(&mut nodes, names(&["a"]));
    assert_eq!(nodes.next(1), data("a", false));
    nodes.created("a");
    assert!(!nodes.is_synced());
    assert_eq!(nodes.next(1), data("a", false));
    assert!(nodes.read(&key("a"), (9, 9), true));
    assert!(nodes.is_synced());
}

#[test]
fn a_sync_waits_for_all_that_its_own_listing_names_and_for_no_more() {
    let mut nodes = synced(&["a", "b"]);
    sync(&mut nodes, names(&["a", "b"]));
    let mut requested: Vec<_> = std::iter::from_fn(|| nodes.next(1)).collect();
    requested.sort_by_key(|read| format!("{read:?}"));
    assert_eq!(requested, [data("a", false).unwrap(), data("b", false).unwrap()], "the nodes have watches");
    listed(&mut nodes, &["a", "b", "later"]);
    assert!(!nodes.read(&key("a"), (1, 1), true));
    // A change in the meantime is read, but the sync does not wait for it.
    nodes.fired(&key("b"), ReadKind::Data);
    nodes.read(&key("b"), (1, 1), true);
    assert!(nodes.is_synced());
    assert_eq!(read_all(&mut nodes, (2, 2)), BTreeSet::from(["b".to_owned(), "later".to_owned()]));
}

#[test]
fn a_child_that_vanishes_or_cannot_be_read_does_not_block_a_sync() {
    let mut nodes = children();
    sync(&mut nodes, names(&["a", "b", "c"]));
    assert!(nodes.deleted(&key("a"), ReadKind::Data).is_empty(), "the node was never reported");
    listed(&mut nodes, &["b"]);
    nodes.next(1);
    assert!(nodes.refused(&key("b"), ReadKind::Data));
    assert!(nodes.is_synced());
    sync(&mut nodes, names(&["b"]));
    assert_eq!(nodes.next(1), data("b", true));
    assert!(!nodes.refused(&key("b"), ReadKind::Data), "already reported");
    nodes.enqueue(&key("b"), ReadKind::Data);
    nodes.next(1);
    assert!(nodes.read(&key("b"), (1, 1), true), "readable again");
}

#[test]
fn reads_without_an_answer_are_sent_again() {
    let mut nodes = synced(&["a", "b"]);
    nodes.fired(&key("a"), ReadKind::Data);
    assert!(nodes.next(1).is_some());
    nodes.unanswered(&key("a"), ReadKind::Data);
    assert_eq!(nodes.next(1), data("a", true));
    assert_eq!(nodes.next(1), None);
}

#[test]
fn in_a_new_session_every_child_is_watched_again() {
    let mut nodes = synced(&["a", "b"]);
    nodes.forget_watches();
    sync(&mut nodes, names(&["a", "b"]));
    assert_eq!(read_all(&mut nodes, (1, 1)).len(), 2);
    assert!(!nodes.watched("a", ReadKind::Data), "a second watch is not kept");
}

/// The due reads of a tree, taken as requested.
fn requested(nodes: &mut Nodes) -> Vec<String> {
    let mut requested = Vec::new();
    while let Some(read) = nodes.next(1) {
        match read {
            Read::One { key, kind, .. } => {
                nodes.watched(&key, kind);
                requested.push(format!("{kind:?} {key}"));
            }
            other => panic!("{other:?}"),
        }
    }
    requested
}

/// A tree `/r` with a child `/r/a`, after a sync.
fn synced_tree(max_depth: usize) -> Nodes {
    let mut nodes = tree(max_depth);
    nodes.begin_sync();
    assert_eq!(requested(&mut nodes), ["Data /r"]);
    assert!(nodes.read(&key("/r"), (1, 1), true));
    assert_eq!(requested(&mut nodes), ["Names /r"]);
    assert!(nodes.listed(&key("/r"), names(&["a"])).is_empty());
    assert!(!nodes.is_synced());
    assert_eq!(requested(&mut nodes), ["Data /r/a"]);
    assert!(nodes.read(&key("/r/a"), (2, 2), true));
    nodes
}

#[test]
fn a_sync_waits_for_all_nodes_that_existed_when_it_began_and_that_it_finds() {
    let mut nodes = synced_tree(9);
    assert!(!nodes.is_synced());
    assert_eq!(requested(&mut nodes), ["Names /r/a"]);
    nodes.listed(&key("/r/a"), Vec::new());
    assert!(nodes.is_synced());
    nodes.begin_sync();
    let mut all = requested(&mut nodes);
    all.sort();
    assert_eq!(all, ["Data /r", "Data /r/a", "Names /r", "Names /r/a"]);
}

#[test]
fn nodes_at_the_greatest_depth_and_ephemeral_ones_are_not_listed() {
    assert!(synced_tree(1).is_synced());
    let mut nodes = synced_tree(2);
    requested(&mut nodes);
    nodes.listed(&key("/r/a"), names(&["b", "c"]));
    requested(&mut nodes);
    nodes.read(&key("/r/a/b"), (3, 3), true);
    nodes.read(&key("/r/a/c"), (3, 3), false);
    assert!(requested(&mut nodes).is_empty() && nodes.is_synced());
}

#[test]
fn a_change_during_a_read_is_read_again_and_one_at_rest_once() {
    let mut nodes = synced_tree(1);
    nodes.enqueue(&key("/r/a"), ReadKind::Data);
    nodes.enqueue(&key("/r/a"), ReadKind::Data);
    assert_eq!(requested(&mut nodes), ["Data /r/a"]);
    nodes.enqueue(&key("/r/a"), ReadKind::Data);
    assert!(nodes.read(&key("/r/a"), (2, 5), true));
    assert_eq!(requested(&mut nodes), ["Data /r/a"]);
    assert!(!nodes.read(&key("/r/a"), (2, 5), true), "unchanged");
    assert!(requested(&mut nodes).is_empty());
}

#[test]
fn all_below_a_removed_node_are_reported_before_it() {
    let mut nodes = synced_tree(9);
    requested(&mut nodes);
    nodes.listed(&key("/r/a"), names(&["b"]));
    requested(&mut nodes);
    nodes.read(&key("/r/a/b"), (3, 3), false);
    assert_eq!(nodes.listed(&key("/r"), Vec::new()), [key("/r/a/b"), key("/r/a")]);
    assert!(nodes.is_synced() && nodes.len() == 1);
    // A late answer about one of the nodes changes nothing.
    assert!(!nodes.read(&key("/r/a/b"), (3, 4), false));
    assert_eq!(nodes.deleted(&key("/r"), ReadKind::Data), [key("/r")]);
    assert_eq!(nodes.len(), 1, "the root is waited for");
}

#[test]
fn another_node_at_the_path_is_listed_again() {
    let mut nodes = synced_tree(9);
    requested(&mut nodes);
    nodes.listed(&key("/r/a"), Vec::new());
    nodes.enqueue(&key("/r/a"), ReadKind::Data);
    requested(&mut nodes);
    assert!(nodes.read(&key("/r/a"), (7, 7), true));
    assert_eq!(requested(&mut nodes), ["Names /r/a"]);
}

#[test]
fn a_refusal_and_its_end_are_each_reported_once() {
    let mut nodes = synced_tree(9);
    requested(&mut nodes);
    assert!(nodes.refused(&key("/r/a"), ReadKind::Names) && !nodes.refused(&key("/r/a"), ReadKind::Names));
    assert!(nodes.is_synced());
    nodes.enqueue(&key("/r/a"), ReadKind::Data);
    requested(&mut nodes);
    assert!(!nodes.read(&key("/r/a"), (2, 2), true), "still not listable");
    nodes.listed(&key("/r/a"), Vec::new());
    assert_eq!(requested(&mut nodes), ["Data /r/a"]);
    assert!(nodes.read(&key("/r/a"), (2, 2), true));
}

#[test]
fn a_root_that_cannot_be_listed_stays_refused_though_its_data_changes() {
    let mut nodes = synced_tree(9);
    nodes.enqueue(&key("/r"), ReadKind::Names);
    requested(&mut nodes);
    assert!(nodes.refused(&key("/r"), ReadKind::Names));
    nodes.enqueue(&key("/r"), ReadKind::Data);
    requested(&mut nodes);
    assert!(nodes.read(&key("/r"), (1, 5), true), "the data is new");
    assert!(nodes.is_root_refused(), "the nodes below are still unknown");
    nodes.listed(&key("/r"), names(&["a"]));
    requested(&mut nodes);
    nodes.read(&key("/r"), (1, 5), true);
    assert!(!nodes.is_root_refused());
}
