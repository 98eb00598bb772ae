use crate::analysis::Analysis;
use crate::violation::{Found, Invariant, Violation};
use crate::watched_link::WatchedLink;

/// **Watches tell each change once**: over a link come the events of all changes that its watches concern,
/// from the reply that sets a watch to the one that removes it or the link's end, in the order of
/// transactions, those of one transaction in any order, each once, and nothing else. A reply that knows of a
/// transaction comes behind its events. Watches that are set again tell what they missed if they come true
/// once, and nothing of that if they stay.
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
    use crate::watcher::{Heard, WatcherLink};
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

    pub(in crate::check) fn link(heard: Vec<(Duration, Heard)>) -> WatcherLink {
        WatcherLink { session: SESSION, folder: "/own".to_owned(), heard }
    }

    pub(in crate::check) fn reply(
        zxid: i64,
        request: Request,
        result: Result<Response, Code>,
    ) -> (Duration, Heard) {
        (Duration::ZERO, Heard::Reply { request, zxid, result })
    }

    pub(in crate::check) fn run(journal: &[Change], link: WatcherLink) -> Run {
        let mut run = Run { journal: journal.to_vec(), ..Run::default() };
        run.facts.watchers.push(link);
        run
    }

    fn ok(zxid: i64, request: Request) -> (Duration, Heard) {
        reply(zxid, request, Ok(Response::Empty))
    }

    fn watch(zxid: i64, path: &str, mode: WatchMode) -> (Duration, Heard) {
        ok(zxid, Request::AddWatch { path: path.into(), mode })
    }

    fn told(kind: EventKind, path: &str) -> (Duration, Heard) {
        (Duration::ZERO, Heard::Event { event: WatchEvent { kind, path: path.to_owned() }, zxid: -1 })
    }

    fn holds(heard: &[(Duration, Heard)]) -> bool {
        let journal = [
            created(1, "/a", 0),
            created(2, "/a/b", 0),
            change(3, ChangeKind::Set, "/a/b", 0),
            change(4, ChangeKind::Deleted, "/a/b", 0),
            created(5, "/b", 0),
        ];
        let found = crate::check(&run(&journal, link(heard.to_vec())));
        assert!(found.iter().all(|violation| violation.invariant == Invariant::W1), "{found:?}");
        found.is_empty()
    }

    #[test]
    fn each_change_is_told_once_in_order_and_before_later_replies() {
        let begins = watch(1, "/", WatchMode::PersistentRecursive);
        let all = [
            told(EventKind::Created, "/a/b"),
            told(EventKind::DataChanged, "/a/b"),
            told(EventKind::Deleted, "/a/b"),
            told(EventKind::Created, "/b"),
        ];
        let heard = |events: &[(Duration, Heard)], end: Option<i64>| {
            let ping = end.map(|zxid| ok(zxid, Request::Ping));
            [std::slice::from_ref(&begins), events, ping.as_slice()].concat()
        };
        assert!(holds(&heard(&all, Some(5))));
        assert!(holds(&heard(&all[..2], Some(3))), "the link ended");
        assert!(holds(&heard(&all[..2], None)));
        assert!(!holds(&heard(&all[..2], Some(4))), "one is missing");
        assert!(!holds(&heard(&all[1..], None)), "the first is missing");
        let [first, second, ..] = &all;
        assert!(!holds(&heard(&[second.clone(), first.clone()], None)), "out of order");
        assert!(!holds(&heard(&[first.clone(), first.clone()], None)), "twice");
        assert!(!holds(&heard(&all[..2], Some(2))), "a reply goes back");
    }

    #[test]
    fn nothing_is_told_before_a_watch_or_after_it() {
        let persistent = watch(2, "/a/b", WatchMode::Persistent);
        let remove = ok(3, Request::RemoveWatches { path: "/a/b".into(), kind: WatchKind::Any });
        let (set, gone) = (told(EventKind::DataChanged, "/a/b"), told(EventKind::Deleted, "/a/b"));
        assert!(holds(&[persistent.clone(), set.clone(), remove.clone(), ok(5, Request::Ping)]));
        assert!(!holds(&[persistent, set.clone(), remove, gone, ok(5, Request::Ping)]));
        assert!(!holds(&[set, ok(5, Request::Ping)]));
    }

    #[test]
    fn watches_set_again_tell_what_they_missed_once_where_they_come_true_once() {
        let again = Request::SetWatches2 {
            once: Watches { relative_zxid: 2, data: vec!["/a/b".into()], ..Watches::default() },
            persistent: Vec::new(),
            recursive: vec!["/a".into()],
        };
        let (set, gone) = (told(EventKind::DataChanged, "/a/b"), told(EventKind::Deleted, "/a/b"));
        assert!(holds(&[set.clone(), ok(3, again.clone()), gone.clone(), ok(5, Request::Ping)]));
        assert!(!holds(&[ok(3, again.clone()), gone.clone()]), "the late one is missing");
        assert!(!holds(&[set.clone(), ok(3, again.clone()), ok(5, Request::Ping)]), "the next is missing");
        assert!(!holds(&[set, ok(3, again), gone.clone(), gone]), "twice");
    }
}
