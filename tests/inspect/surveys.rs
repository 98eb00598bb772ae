//! Surveys that follow a root.

use docent::inspect::{Inspector, Kind, LiveSurvey, Recipe, Report, Surveys};
use docent::{CreateMode, Mutex};
use docent_battery::{Backend, Direction, both_backends};
use docent_proto::OpCode;
use docent_tests::{builder, connect, soon};
use futures_util::StreamExt;

/// Returns the next survey for which `holds` returns true.
async fn next_with(surveys: &mut Surveys, holds: impl Fn(&LiveSurvey) -> bool) -> LiveSurvey {
    soon(async {
        loop {
            let live = surveys.next().await.unwrap().unwrap();
            if holds(&live) {
                return live;
            }
        }
    })
    .await
}

fn found(live: &LiveSurvey) -> Vec<(&str, Kind)> {
    live.survey.found.iter().map(|report| (report.path.as_str(), report.kind())).collect()
}

fn contenders(report: &Report) -> usize {
    match &report.recipe {
        Recipe::Mutex(line) => line.contenders.len(),
        _ => 0,
    }
}

both_backends! {
    async fn new_changed_and_deleted_recipes_are_reported(backend: Backend) {
        let server = backend.start().await;
        let (client, observer) = (connect(&server).await, connect(&server).await);
        let mut surveys = Inspector::new(&observer).watch_below("/");
        let first = soon(surveys.next()).await.unwrap().unwrap();
        assert_eq!((found(&first).len(), first.is_stale, first.unwatched), (0, false, 0));
        let mutex = Mutex::new(&client, "/app/locks/report").unwrap();
        let guard = soon(mutex.acquire()).await.unwrap();
        next_with(&mut surveys, |live| found(live) == [("/app/locks/report", Kind::Mutex)]).await;
        let waiting = tokio::spawn(mutex.acquire());
        next_with(&mut surveys, |live| live.survey.found.iter().any(|it| contenders(it) == 2)).await;
        // A plain node receives data.
        soon(client.create("/limit", "", CreateMode::Persistent)).await.unwrap();
        soon(client.set("/limit", "7", None)).await.unwrap();
        next_with(&mut surveys, |live| found(live).contains(&("/limit", Kind::Counter))).await;
        waiting.abort();
        soon(guard.release()).await.unwrap();
        next_with(&mut surveys, |live| found(live) == [("/limit", Kind::Counter)]).await;
        observer.close().await;
        soon(async { while surveys.next().await.is_some() {} }).await;
    }

    async fn only_what_changed_is_read_again(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let proxy = server.proxy().await;
        let observer = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let create = (0..100).fold(client.transaction(), |create, number| {
            create.create(&format!("/n{number:03}"), "7", CreateMode::Persistent)
        });
        soon(create.commit()).await.unwrap();
        let mut surveys = Inspector::builder(&observer).read_only().build().watch_below("/");
        let is = |number: &'static str| {
            move |live: &LiveSurvey| match &live.survey.found[50].recipe {
                Recipe::Counter(counter) => counter.number == number,
                _ => false,
            }
        };
        next_with(&mut surveys, is("7")).await;
        // The watches are set when the survey is reported.
        soon(client.set("/n050", "8", None)).await.unwrap();
        next_with(&mut surveys, is("8")).await;
        soon(client.set("/n099", "8", None)).await.unwrap();
        next_with(&mut surveys, |live| matches!(&live.survey.found[99].recipe, Recipe::Counter(it) if it.number == "8")).await;
        let before = proxy.trace().len();
        soon(client.set("/n050", "9", None)).await.unwrap();
        next_with(&mut surveys, is("9")).await;
        let trace = proxy.trace();
        let asked = trace[before..].iter().filter(|frame| {
            frame.direction == Direction::ToServer && frame.op != Some(OpCode::Ping)
        });
        // The client sets the watch again, and reads the node's data and children.
        assert!(asked.clone().count() <= 4, "{:?}", asked.collect::<Vec<_>>());
    }

    async fn a_survey_is_stale_during_an_outage(backend: Backend) {
        let server = backend.start_own().await;
        let client = connect(&server).await;
        soon(client.create("/v", "one", CreateMode::Persistent)).await.unwrap();
        let mut surveys = Inspector::new(&client).watch_below("/");
        next_with(&mut surveys, |live| found(live) == [("/v", Kind::Value)] && !live.is_stale).await;
        server.stop().await;
        next_with(&mut surveys, |live| live.is_stale).await;
        server.start_again().await;
        let back = next_with(&mut surveys, |live| !live.is_stale).await;
        assert_eq!(found(&back), [("/v", Kind::Value)]);
    }
}
