use crate::analysis::Analysis;
use crate::violation::{Found, Invariant, Violation};
use crate::watched_link::WatchedLink;

/// **Watches report each change once**: the events of all changes that a link's watches concern arrive on
/// that link, each once, and nothing else.
///
/// - This applies from the reply that sets a watch to the one that removes it, or to the end of the link.
/// - Events arrive in the order of transactions; those of one transaction in any order.
/// - A reply that reflects a transaction arrives after the transaction's events.
/// - When watches are set again, one-shot watches report what they missed, and persistent ones do not.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    for link in &analysis.facts().watchers {
        if let Some((at, what)) = WatchedLink::follow(link, &analysis.run.journal, |_, _, _| None) {
            let what = format!("session {:#x}: {what}", link.session);
            found.push(Violation::new(Invariant::W1, at, what));
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use crate::journal::{Change, ChangeKind, EndCause};
    use crate::run::Run;
    use crate::violation::Invariant;
    use crate::watcher::{Received, WatcherLink};
    use docent_proto::{Code, EventKind, Request, Response, WatchEvent, WatchKind, WatchMode, Watches};
    use std::time::Duration;

    const SESSION: i64 = 7;

    fn change(zxid: i64, kind: ChangeKind, path: &str, owner: i64) -> Change {
        Change { zxid, at: Duration::ZERO, session: owner, kind, path: path.to_owned(), owner }
    }

    pub(in crate::check) fn created(zxid: i64, path: &str, owner: i64) -> Change {
        change(zxid, ChangeKind::Created, path, owner)
    }

    pub(in crate::check) fn ended(zxid: i64) -> Change {
        change(zxid, ChangeKind::Ended(EndCause::Closed), "", 0)
    }

    pub(in crate::check) fn link(received: Vec<(Duration, Received)>) -> WatcherLink {
        WatcherLink { session: SESSION, folder: "/own".to_owned(), received }
    }

    pub(in crate::check) fn reply(
        zxid: i64,
        request: Request,
        result: Result<Response, Code>,
    ) -> (Duration, Received) {
        (Duration::ZERO, Received::Reply { request, zxid, result })
    }

    pub(in crate::check) fn run(journal: &[Change], link: WatcherLink) -> Run {
        let mut run = Run { journal: journal.to_vec(), ..Run::default() };
        run.facts.watchers.push(link);
        run
    }

    fn ok(zxid: i64, request: Request) -> (Duration, Received) {
        reply(zxid, request, Ok(Response::Empty))
    }

    fn watch(zxid: i64, path: &str, mode: WatchMode) -> (Duration, Received) {
        ok(zxid, Request::AddWatch { path: path.into(), mode })
    }

    fn notified(kind: EventKind, path: &str) -> (Duration, Received) {
        (Duration::ZERO, Received::Event { event: WatchEvent { kind, path: path.to_owned() }, zxid: -1 })
    }

    fn holds(received: &[(Duration, Received)]) -> bool {
        let journal = [
            created(1, "/a", 0),
            created(2, "/a/b", 0),
            change(3, ChangeKind::Set, "/a/b", 0),
            change(4, ChangeKind::Deleted, "/a/b", 0),
            created(5, "/b", 0),
        ];
        let found = crate::check(&run(&journal, link(received.to_vec())));
        assert!(found.iter().all(|violation| violation.invariant == Invariant::W1), "{found:?}");
        found.is_empty()
    }

    #[test]
    fn each_change_is_notified_once_in_order_and_before_later_replies() {
        let begins = watch(1, "/", WatchMode::PersistentRecursive);
        let all = [
            notified(EventKind::Created, "/a/b"),
            notified(EventKind::DataChanged, "/a/b"),
            notified(EventKind::Deleted, "/a/b"),
            notified(EventKind::Created, "/b"),
        ];
        let received = |events: &[(Duration, Received)], end: Option<i64>| {
            let ping = end.map(|zxid| ok(zxid, Request::Ping));
            [std::slice::from_ref(&begins), events, ping.as_slice()].concat()
        };
        assert!(holds(&received(&all, Some(5))));
        assert!(holds(&received(&all[..2], Some(3))), "the link may end early");
        assert!(holds(&received(&all[..2], None)));
        assert!(!holds(&received(&all[..2], Some(4))), "an event is missing");
        assert!(!holds(&received(&all[1..], None)), "the first event is missing");
        let [first, second, ..] = &all;
        assert!(!holds(&received(&[second.clone(), first.clone()], None)), "the events are out of order");
        assert!(!holds(&received(&[first.clone(), first.clone()], None)), "twice");
        assert!(!holds(&received(&all[..2], Some(2))), "a reply may not go back");
    }

    #[test]
    fn nothing_is_notified_before_a_watch_is_set_or_after_it_is_removed() {
        let persistent = watch(2, "/a/b", WatchMode::Persistent);
        let remove = ok(3, Request::RemoveWatches { path: "/a/b".into(), kind: WatchKind::Any });
        let (set, deleted) = (notified(EventKind::DataChanged, "/a/b"), notified(EventKind::Deleted, "/a/b"));
        assert!(holds(&[persistent.clone(), set.clone(), remove.clone(), ok(5, Request::Ping)]));
        assert!(!holds(&[persistent, set.clone(), remove, deleted, ok(5, Request::Ping)]));
        assert!(!holds(&[set, ok(5, Request::Ping)]));
    }

    #[test]
    fn rearmed_one_shot_watches_report_missed_changes_once() {
        let again = Request::SetWatches2 {
            once: Watches { relative_zxid: 2, data: vec!["/a/b".into()], ..Watches::default() },
            persistent: Vec::new(),
            recursive: vec!["/a".into()],
        };
        let (set, deleted) = (notified(EventKind::DataChanged, "/a/b"), notified(EventKind::Deleted, "/a/b"));
        assert!(holds(&[set.clone(), ok(3, again.clone()), deleted.clone(), ok(5, Request::Ping)]));
        assert!(!holds(&[ok(3, again.clone()), deleted.clone()]), "the late event is missing");
        assert!(!holds(&[set.clone(), ok(3, again.clone()), ok(5, Request::Ping)]), "the last is missing");
        assert!(!holds(&[set, ok(3, again), deleted.clone(), deleted]), "twice");
    }
}
