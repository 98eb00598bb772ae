//! Holders and waiters of locks and elections.

use docent::inspect::{Inspector, Kind, Line, Recipe, Report, TimeSource, Writer};
use docent::{Client, Election, Mutex, RwLock, Semaphore};
use docent_battery::{Backend, both_backends};
use docent_tests::{builder, connect, soon, until};

/// Returns the report about a path when `holds` returns true for it.
async fn report_when(client: &Client, path: &str, holds: impl Fn(&Report) -> bool) -> Report {
    let inspector = Inspector::new(client);
    let mut report = None;
    until(async || {
        let found = inspector.path(path).await.unwrap();
        holds(&found) && report.replace(found).is_none()
    })
    .await;
    report.unwrap()
}

fn line(report: &Report) -> Option<&Line> {
    match &report.recipe {
        Recipe::Mutex(line) | Recipe::ReadWriteLock(line) => Some(line),
        _ => None,
    }
}

fn has_contenders(count: usize) -> impl Fn(&Report) -> bool {
    move |report| line(report).is_some_and(|line| line.contenders.len() == count)
}

both_backends! {
    async fn a_mutex_reports_holder_fence_and_waiters(backend: Backend) {
        let server = backend.start().await;
        let holder = builder(&server, server.connect_string()).label("nightly import").connect().await.unwrap();
        let waiter = connect(&server).await;
        let guard = soon(Mutex::new(&holder, "/m").unwrap().acquire()).await.unwrap();
        let mutex = Mutex::new(&waiter, "/m").unwrap();
        let waiting = [tokio::spawn(mutex.acquire()), tokio::spawn(mutex.acquire())];

        let report = report_when(&waiter, "/m", has_contenders(3)).await;
        assert_eq!((report.kind(), &report.writers[..]), (Kind::Mutex, &[Writer::Docent][..]));
        assert!(report.is_complete() && report.as_of_zxid > 0);
        let line = line(&report).unwrap();
        let [first, second, third] = &line.contenders[..] else { panic!("{line:?}") };
        assert_eq!((first.fence, first.session), (Some(guard.fence()), holder.session_id()));
        assert_eq!(first.client.as_ref().unwrap().label(), Some("nightly import"));
        assert_eq!(first.client.as_ref().unwrap().pid(), std::process::id());
        assert!(first.holds && !second.holds && !third.holds);
        assert_eq!((&second.waits_for, &third.waits_for), (&Some(first.name.clone()), &Some(second.name.clone())));
        assert_eq!(second.session, waiter.session_id());
        // The time of arrival and the current time are by the servers' clock.
        let clock = report.clock.unwrap();
        assert_eq!(clock.source, TimeSource::OwnNode);
        let since = first.since.unwrap();
        assert_eq!(clock.now.duration_since(since.at).unwrap(), since.age);

        waiting.iter().for_each(tokio::task::JoinHandle::abort);
        soon(guard.release()).await.unwrap();
        report_when(&waiter, "/m", |report| matches!(report.kind(), Kind::Plain | Kind::Absent)).await;
    }

    async fn readers_and_writers_are_distinguished(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let lock = RwLock::new(&client, "/rw").unwrap();
        let (_one, _other) = (soon(lock.read()).await.unwrap(), soon(lock.read()).await.unwrap());
        let writing = tokio::spawn(lock.write());
        let report = report_when(&client, "/rw", has_contenders(3)).await;
        assert_eq!(report.kind(), Kind::ReadWriteLock);
        let line = line(&report).unwrap();
        assert_eq!((line.holders().count(), line.waiters().count()), (2, 1));
        let writer = line.waiters().next().unwrap();
        assert_eq!(writer.waits_for.as_ref(), Some(&line.contenders[1].name));
        writing.abort();
    }

    async fn a_semaphore_reports_its_limit_permits_and_waiters(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let semaphore = Semaphore::new(&client, "/s", 2).unwrap();
        let _permits = soon(semaphore.acquire_many(2)).await.unwrap();
        let waiting = [tokio::spawn(semaphore.acquire()), tokio::spawn(semaphore.acquire())];
        let counts = |report: &Report| match &report.recipe {
            Recipe::Semaphore(semaphore) => {
                let waiting = semaphore.waiters.iter().filter(|waiter| !waiter.holds).count();
                Some((semaphore.limit, semaphore.permits.len(), waiting))
            }
            _ => None,
        };
        // The first waiter is next, and has a ticket for a permit.
        report_when(&client, "/s", |report| counts(report) == Some((Some(2), 2, 2))).await;
        waiting.iter().for_each(tokio::task::JoinHandle::abort);
    }

    async fn an_election_reports_leader_and_candidates(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let election = |id: &str| Election::builder(&client, "/e").id(id).build().unwrap();
        let leadership = soon(election("host-1").campaign()).await.unwrap();
        let next = election("host-2");
        let campaign = tokio::spawn(async move { next.campaign().await });
        let candidates = |report: &Report| match &report.recipe {
            Recipe::Election(election) => election.candidates.len(),
            _ => 0,
        };
        let report = report_when(&client, "/e", |report| candidates(report) == 1).await;
        let Recipe::Election(election) = report.recipe else { panic!("no election") };
        let leader = election.leader.unwrap();
        assert_eq!(leader.identity.unwrap().as_str(), Some("host-1"));
        assert_eq!(leader.fence, Some(leadership.fence()));
        assert_eq!(election.candidates[0].identity.as_ref().unwrap().as_str(), Some("host-2"));
        campaign.abort();
    }
}
