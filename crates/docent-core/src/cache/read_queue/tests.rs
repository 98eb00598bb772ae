use super::*;

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn name(name: &str) -> Arc<str> {
    Arc::from(name)
}

/// ReadQueue after a sync, with children `names` as of transaction 1, all watched.
fn synced(listed: &[&str]) -> ReadQueue {
    let mut work = ReadQueue::default();
    work.begin_sync();
    assert!(work.listed(names(listed)).is_empty());
    while let Some(read) = work.next(1) {
        let Read::One { name, watch: true } = read else { panic!("one by one, with a watch: {read:?}") };
        assert!(work.watched(&name));
        assert!(work.read(&name, (1, 1)));
    }
    assert!(work.is_synced());
    work
}

#[test]
fn a_listing_tells_who_is_gone_and_has_the_new_ones_read() {
    let mut work = synced(&["a", "b", "c"]);
    let mut gone = work.listed(names(&["d", "b"]));
    gone.sort();
    assert_eq!(gone, [name("a"), name("c")]);
    assert_eq!(work.next(64), Some(Read::One { name: name("d"), watch: true }));
    assert_eq!(work.next(64), None, "what is known and watched is not read again");
    assert!(work.listed(names(&["b", "d"])).is_empty());
    assert_eq!(work.len(), 2);
}

#[test]
fn a_listing_in_another_order_tells_nothing_and_one_child_more_or_less_is_found_in_its_place() {
    let mut work = synced(&["a", "b", "c", "d"]);
    assert!(work.listed(names(&["d", "b", "a", "c"])).is_empty());
    assert_eq!(work.next(64), None);
    assert_eq!(work.listed(names(&["d", "b", "c"])), [name("a")]);
    assert_eq!(work.listed(names(&["d", "b"])), [name("c")]);
    assert!(work.listed(names(&["d", "x", "b"])).is_empty());
    assert_eq!(work.next(64), Some(Read::One { name: name("x"), watch: true }));
    assert_eq!((work.next(64), work.len()), (None, 3));
    // Twice the same name, at the start and at the end.
    assert_eq!(unmoved(&[name("d"), name("d")], &names(&["d"])), (1, 0));
    assert_eq!(unmoved(&[name("d")], &names(&["d", "d"])), (1, 0));
}

#[test]
fn who_was_found_to_be_gone_and_is_listed_again_in_its_place_is_read() {
    let mut work = synced(&["a", "b", "c"]);
    assert!(work.gone("b"));
    assert!(work.listed(names(&["a", "b", "c"])).is_empty());
    assert_eq!(work.next(64), Some(Read::One { name: name("b"), watch: true }));
    assert_eq!(work.next(64), None);
}

proptest::proptest! {
    #[test]
    fn a_listing_is_taken_as_by_a_look_at_every_name(
        listings in proptest::collection::vec(
            (proptest::collection::vec(0..12_u8, 0..12), proptest::option::of(0..12_u8)), 1..12),
    ) {
        let mut work = ReadQueue::default();
        work.begin_sync();
        let mut known = std::collections::BTreeSet::new();
        for (listing, gone) in listings {
            let listing: std::collections::BTreeSet<_> = listing.iter().map(u8::to_string).collect();
            let mut found: Vec<_> = work.listed(listing.iter().cloned().collect());
            found.sort();
            let missing: Vec<_> = known.difference(&listing).map(|gone| name(gone)).collect();
            proptest::prop_assert_eq!(found, missing);
            let mut read = std::collections::BTreeSet::new();
            while let Some(Read::One { name, .. }) = work.next(1) {
                work.watched(&name);
                work.read(&name, (1, 1));
                read.insert(name.to_string());
            }
            let new: std::collections::BTreeSet<_> = listing.difference(&known).cloned().collect();
            proptest::prop_assert!(read.is_superset(&new) && read.is_subset(&listing), "{:?}", read);
            known = listing;
            if let Some(gone) = gone.map(|gone| gone.to_string()) {
                proptest::prop_assert_eq!(work.gone(&gone), known.remove(&gone));
            }
        }
    }
}

#[test]
fn who_was_never_read_is_not_told_to_be_gone() {
    let mut work = synced(&[]);
    work.listed(names(&["a"]));
    assert!(work.listed(names(&[])).is_empty());
    assert_eq!(work.next(64), None);
}

#[test]
fn only_another_version_is_news() {
    let mut work = synced(&["a"]);
    assert!(!work.read(&name("a"), (1, 1)));
    assert!(work.read(&name("a"), (1, 2)), "changed");
    assert!(work.read(&name("a"), (3, 3)), "created again");
    assert!(!work.read(&name("x"), (1, 1)), "what is in no listing is no child");
}

#[test]
fn many_are_read_together_and_watched_one_by_one_afterwards() {
    let all: Vec<String> = (0..200).map(|n| n.to_string()).collect();
    let mut work = ReadQueue::default();
    work.begin_sync();
    work.listed(all);
    let (mut together, mut alone) = (0, 0);
    while let Some(read) = work.next(50) {
        match read {
            Read::Several(names) => {
                assert!(names.len() <= 50);
                together += names.len();
                names.iter().for_each(|name| assert!(work.read(name, (1, 1))));
                assert_eq!(work.is_synced(), together == 200);
            }
            Read::Watch { .. } => panic!("it is not known as of when they are"),
            Read::One { name, watch } => {
                assert!(watch);
                alone += 1;
                assert!(work.watched(&name));
                work.read(&name, (1, 1));
            }
        }
    }
    // The last few are read and watched in one request.
    assert_eq!((together, alone), (150, 200));
}

#[test]
fn many_that_are_known_as_of_a_transaction_get_their_watches_by_few_requests() {
    let mut work = ReadQueue::default();
    work.begin_sync();
    work.listed((0..2_000).map(|n| n.to_string()).collect());
    let (mut zxid, mut armed, mut requests) = (7, 0, 0);
    while let Some(read) = work.next(50) {
        match read {
            Read::Several(names) => {
                work.as_of(zxid);
                zxid += 1;
                names.iter().for_each(|name| assert!(work.read(name, (1, 1))));
            }
            Read::One { name, .. } => {
                assert!(work.watched(&name) && work.read(&name, (1, 1)));
            }
            Read::Watch { names, since } => {
                assert!(since >= 7, "no child is older than its own read");
                requests += 1;
                armed += names.len();
                names.iter().for_each(|name| assert!(work.armed(name)));
            }
        }
    }
    assert_eq!((armed, requests), (1_950, 4));
}

#[test]
fn a_watch_that_could_not_be_set_is_left_by_a_read() {
    let mut work = ReadQueue::default();
    work.begin_sync();
    work.listed((0..70).map(|n| n.to_string()).collect());
    work.as_of(7);
    let Some(Read::Several(names)) = work.next(10) else { panic!("many are read together") };
    names.iter().for_each(|name| assert!(work.read(name, (1, 1))));
    while let Some(Read::One { name, .. }) = work.next(1) {
        assert!(work.watched(&name) && work.read(&name, (1, 1)));
    }
    names.iter().for_each(|name| work.unwatched(name));
    assert!(matches!(work.next(10), Some(Read::One { watch: true, .. })));
}

#[test]
fn a_child_told_while_the_folder_is_listed_stays_though_the_listing_is_older() {
    let mut work = synced(&["a"]);
    work.set_persistent(true);
    work.joined("b", true);
    assert!(work.listed(names(&["a"])).is_empty());
    let Some(Read::One { name: b, watch: false }) = work.next(1) else { panic!("it is read") };
    // It is deleted and created again: the answer to that read is of the node before.
    work.joined("b", false);
    assert!(!work.is_current(&b));
    let Some(Read::One { name: b, .. }) = work.next(1) else { panic!("it is read anew") };
    assert!(work.is_current(&b) && work.read(&b, (5, 5)));
    assert_eq!(work.listed(names(&["a"])), [name("b")], "a later listing counts");
}

#[test]
fn a_known_child_created_again_while_the_folder_is_listed_stays_though_the_listing_is_older() {
    let mut work = synced(&["a", "b"]);
    work.set_persistent(true);
    work.begin_sync();
    work.joined("b", true);
    assert!(work.listed(names(&["a"])).is_empty());
    assert_eq!(work.len(), 2);
    assert_eq!(work.listed(names(&["a"])), [name("b")], "a later listing counts");
}

#[test]
fn a_known_child_created_again_is_kept_by_one_listing_only() {
    let mut work = synced(&["a", "b"]);
    work.set_persistent(true);
    work.joined("b", true);
    assert!(work.listed(names(&["a"])).is_empty());
    assert_eq!(work.listed(names(&["a"])), [name("b")]);
}

/// ReadQueue in a new session, with a child `a` that is known as of transaction 7 and not watched.
fn in_a_new_session() -> ReadQueue {
    let mut work = synced(&["a"]);
    work.as_of(7);
    assert!(!work.read(&name("a"), (1, 1)));
    work.forget_watches();
    work
}

#[test]
fn a_sync_reads_what_it_finds_without_a_watch_and_arms_nothing_before_its_end() {
    let mut work = in_a_new_session();
    work.begin_sync();
    assert_eq!(work.next(64), None, "the listing comes first");
    work.listed(names(&["a"]));
    assert_eq!(work.next(64), Some(Read::One { name: name("a"), watch: true }));
    assert!(!work.is_synced());
    assert!(work.read(&name("a"), (1, 8)));
    assert!(work.is_synced());
    let armed = Read::Watch { names: vec![name("a")], since: 7 };
    assert_eq!(work.next(64), Some(armed), "the sync is over");
}

#[test]
fn what_is_known_is_armed_while_the_folder_cannot_be_listed() {
    let mut work = in_a_new_session();
    work.begin_sync();
    work.give_up_sync();
    assert!(matches!(work.next(64), Some(Read::Watch { since: 7, .. })));
}

#[test]
fn a_sync_reads_what_was_being_armed_when_it_began() {
    for is_armed in [true, false] {
        let mut work = in_a_new_session();
        assert!(matches!(work.next(64), Some(Read::Watch { since: 7, .. })));
        work.begin_sync();
        work.listed(names(&["a"]));
        if is_armed {
            assert!(work.armed(&name("a")));
        } else {
            work.unwatched(&name("a"));
        }
        assert!(!work.is_synced(), "it has not been read");
        assert_eq!(work.next(64), Some(Read::One { name: name("a"), watch: !is_armed }));
        assert!(work.read(&name("a"), (1, 8)));
        assert!(work.is_synced());
    }
}

#[test]
fn a_sync_waits_for_what_its_own_listing_names_and_for_no_more() {
    let mut work = synced(&["a", "b"]);
    work.begin_sync();
    assert!(!work.is_synced());
    work.listed(names(&["a", "b"]));
    let (first, second) = (work.next(1), work.next(1));
    assert_eq!(first, Some(Read::One { name: name("a"), watch: false }), "it has a watch");
    work.listed(names(&["a", "b", "later"]));
    assert!(!work.read(&name("a"), (1, 1)));
    // A change meanwhile is read, but the sync does not wait for it.
    work.fired(&name("b"));
    assert!(matches!(second, Some(Read::One { .. })));
    work.read(&name("b"), (1, 1));
    assert!(work.is_synced());
    assert_eq!(work.next(1), Some(Read::One { name: name("later"), watch: true }));
    assert_eq!(work.next(1), Some(Read::One { name: name("b"), watch: true }));
}

#[test]
fn a_child_that_vanishes_during_a_sync_does_not_hold_it_up() {
    let mut work = ReadQueue::default();
    work.begin_sync();
    work.listed(names(&["a", "b", "c"]));
    assert!(!work.gone("a"), "nobody was told of it");
    work.listed(names(&["b"]));
    work.next(1);
    assert!(work.unreadable(&name("b")));
    assert!(work.is_synced());
    work.begin_sync();
    work.listed(names(&["b"]));
    assert_eq!(work.next(1), Some(Read::One { name: name("b"), watch: true }));
    assert!(!work.unreadable(&name("b")), "that is no news");
    work.unread(&name("b"));
    work.next(1);
    assert!(work.read(&name("b"), (1, 1)), "it can be read again");
}

#[test]
fn what_has_no_answer_is_asked_again() {
    let mut work = synced(&["a", "b"]);
    work.fired(&name("a"));
    assert!(work.next(1).is_some());
    work.unanswered(&name("a"));
    assert!(work.next(1).is_some());
    work.forget_asked();
    assert_eq!(work.next(1), Some(Read::One { name: name("a"), watch: true }));
    assert_eq!(work.next(1), None);
}

#[test]
fn in_a_new_session_every_child_is_watched_anew() {
    let mut work = synced(&["a", "b"]);
    work.forget_watches();
    let mut watched = 0;
    while let Some(Read::One { name, watch }) = work.next(64) {
        assert!(watch && work.watched(&name));
        assert!(!work.watched(&name), "a second watch is not kept");
        assert!(!work.read(&name, (1, 1)));
        watched += 1;
    }
    assert_eq!(watched, 2);
}
