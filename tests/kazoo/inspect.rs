//! Reports about nodes that kazoo created.

use crate::beside_kazoo;
use crate::client::both;
use docent::Client;
use docent::inspect::{Contender, Inspector, Kind, NumberFormat, Recipe, Report, Writer};
use docent_battery::Backend;
use docent_tests::{soon, until};

async fn report(client: &Client, path: &str) -> Report {
    soon(Inspector::new(client).path(path)).await.unwrap()
}

/// Returns the contenders of a lock when there are `count`.
async fn until_contenders(client: &Client, path: &str, count: usize) -> Vec<Contender> {
    let mut found = Vec::new();
    until(async || {
        let report = report(client, path).await;
        if let Recipe::Mutex(line) | Recipe::ReadWriteLock(line) = report.recipe {
            found = line.contenders;
        }
        found.len() == count
    })
    .await;
    found
}

fn ids(contenders: &[Contender]) -> Vec<String> {
    contenders.iter().map(|one| one.identity.as_ref().unwrap().to_string()).collect()
}

beside_kazoo! {
    async fn holders_and_waiters_of_kazoos_locks_are_named(backend: Backend) {
        let server = backend.start().await;
        let (client, kazoo) = both(&server).await;
        let (one, other) = (kazoo.make("lock /m first").await, kazoo.make("lock /m second").await);
        one.done("acquire").await;
        let waiting = other.start("acquire");
        let line = until_contenders(&client, "/m", 2).await;
        assert_eq!(ids(&line), ["first", "second"]);
        assert!(line[0].holds && line.iter().all(|one| one.writer == Writer::Kazoo));
        assert_eq!(line[1].waits_for.as_ref(), Some(&line[0].name));
        one.done("release").await;
        waiting.done().await;

        let reader = kazoo.make("read-lock /rw reader").await;
        let writer = kazoo.make("write-lock /rw writer").await;
        reader.done("acquire").await;
        let writing = writer.start("acquire");
        let line = until_contenders(&client, "/rw", 2).await;
        assert_eq!((ids(&line), line[1].holds), (vec!["reader".to_owned(), "writer".to_owned()], false));
        assert_eq!(report(&client, "/rw").await.kind(), Kind::ReadWriteLock);
        reader.done("release").await;
        writing.done().await;
    }

    async fn kazoos_other_recipes_are_recognised(backend: Backend) {
        let server = backend.start().await;
        let (client, kazoo) = both(&server).await;
        let semaphore = kazoo.make("semaphore /s 2").await;
        semaphore.done("try").await;
        let Recipe::Semaphore(semaphore) = report(&client, "/s").await.recipe else { panic!("no semaphore") };
        assert_eq!((semaphore.limit, semaphore.permits.len()), (Some(2), 1));

        // The waiter is in a lock beside the semaphore, which is not listed as a separate recipe.
        let (holder, waiter) = (kazoo.make("semaphore /w 1").await, kazoo.make("semaphore /w 1").await);
        holder.done("acquire").await;
        let waiting = waiter.start("acquire");
        until_contenders(&client, "/w-__lock__", 1).await;
        assert_eq!(report(&client, "/w-__lock__").await.part_of.as_deref(), Some("/w"));
        let survey = soon(Inspector::new(&client).walk("/")).await.unwrap();
        let paths: Vec<_> = survey.found.iter().map(|found| &*found.path).collect();
        assert_eq!(paths, ["/s", "/w"]);
        let Recipe::Semaphore(semaphore) = &survey.found[1].recipe else { panic!("no semaphore") };
        assert_eq!((semaphore.permits.len(), semaphore.waiters.len()), (1, 1));
        holder.done("release").await;
        waiting.done().await;

        for (kind, path) in [("party", "/party"), ("shallow-party", "/shallow")] {
            kazoo.make(&format!("{kind} {path} worker")).await.done("join").await;
            let report = report(&client, path).await;
            assert_eq!((report.kind(), &report.writers[..]), (Kind::Membership, &[Writer::Kazoo][..]));
        }

        kazoo.make("counter /count").await.done("add 4").await;
        kazoo.make("counter /shared curator").await.done("add 5").await;
        for (path, number, format) in [("/count", "4", NumberFormat::Text), ("/shared", "5", NumberFormat::I32)] {
            let Recipe::Counter(count) = report(&client, path).await.recipe else { panic!("no counter") };
            assert_eq!((count.number.as_str(), count.format), (number, format));
        }

        let election = kazoo.make("election /election host-7").await;
        election.done("stand").await;
        election.done("lead").await;
        let report = report(&client, "/election").await;
        assert!(report.may_be.contains(&Kind::Election));
        let Recipe::Mutex(line) = report.recipe else { panic!("no line") };
        assert_eq!(ids(&line.contenders), ["host-7"]);
        election.done("resign").await;
    }
}
