//! Walks, and their limits on a large tree.

use docent::inspect::{Inspector, Kind, Limits, Recipe, Survey};
use docent::{Client, CreateMode, Mutex};
use docent_battery::{Backend, both_backends};
use docent_tests::{connect, soon};

/// Creates children of a node, a thousand per request.
async fn fill(client: &Client, folder: &str, count: usize) {
    soon(client.create(folder, "", CreateMode::Persistent)).await.unwrap();
    for thousand in 0..count.div_ceil(1_000) {
        let numbers = thousand * 1_000..count.min((thousand + 1) * 1_000);
        let create = numbers.fold(client.transaction(), |create, number| {
            create.create(&format!("{folder}/n{number:05}"), "", CreateMode::Persistent)
        });
        soon(create.commit()).await.unwrap();
    }
}

fn found(survey: &Survey) -> Vec<(&str, Kind)> {
    survey.found.iter().map(|report| (report.path.as_str(), report.kind())).collect()
}

both_backends! {
    async fn a_walk_finds_the_recipes_without_descending_into_them(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let _lock = soon(Mutex::new(&client, "/app/locks/report").unwrap().acquire()).await.unwrap();
        soon(client.create("/app/jobs", "", CreateMode::Persistent)).await.unwrap();
        soon(client.create("/app/jobs/qn-", "job", CreateMode::PersistentSequential)).await.unwrap();
        soon(client.create("/limit", "\0\0\0\x07", CreateMode::Persistent)).await.unwrap();
        let survey = soon(Inspector::new(&client).walk("/")).await.unwrap();
        let expected =
            [("/limit", Kind::Counter), ("/app/jobs", Kind::Queue), ("/app/locks/report", Kind::Mutex)];
        assert_eq!(found(&survey), expected);
        assert!(survey.is_complete(), "{survey:?}");
        let below = soon(Inspector::new(&client).walk("/app/locks")).await.unwrap();
        assert_eq!(found(&below), [("/app/locks/report", Kind::Mutex)]);
    }

    async fn a_walk_stops_at_its_depth_and_reports_it(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let _lock = soon(Mutex::new(&client, "/a/b/c/lock").unwrap().acquire()).await.unwrap();
        let with = |depth| Inspector::builder(&client).limits(Limits::default().depth(depth)).build();
        let short = soon(with(3).walk("/")).await.unwrap();
        assert_eq!((found(&short).len(), short.left_out.deep), (0, 1));
        let enough = soon(with(4).walk("/")).await.unwrap();
        assert_eq!((found(&enough).len(), enough.left_out.deep), (1, 0));
    }

    async fn twenty_thousand_nodes_are_walked_within_the_limit_and_the_rest_is_counted(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        fill(&client, "/large", 20_000).await;
        let inspector = |nodes| {
            let limits = Limits::default().nodes(nodes).in_flight(64);
            Inspector::builder(&client).limits(limits).build()
        };
        let survey = soon(inspector(3_000).walk("/")).await.unwrap();
        assert_eq!((survey.nodes, found(&survey).len()), (3_000, 0));
        // The total consists of the 20,000 nodes, their two ancestors, and Docent's own folders.
        let all = survey.nodes + survey.left_out.nodes;
        assert!((20_002..20_010).contains(&all), "{all}");
        // A report about the folder itself reads a few of its children.
        let report = soon(inspector(3_000).path("/large")).await.unwrap();
        let Recipe::Plain(plain) = &report.recipe else { panic!("{report:?}") };
        assert_eq!(plain.children, 20_000);
        assert!(report.is_complete());
    }

    async fn a_limit_cuts_whole_recipes_and_never_their_state(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        soon(client.create("/locks", "", CreateMode::Persistent)).await.unwrap();
        for hundred in 0..4 {
            let locks = (hundred * 100..(hundred + 1) * 100).fold(client.transaction(), |create, number| {
                let lock = format!("/locks/n{number:03}");
                let ticket = format!("{lock}/_c_{number:032x}-lock-0000000000");
                create
                    .create(&lock, "", CreateMode::Persistent)
                    .create(&ticket, "10.0.0.7", CreateMode::Ephemeral)
            });
            soon(locks.commit()).await.unwrap();
        }
        let walk = async |nodes| {
            let limits = Limits::default().nodes(nodes);
            soon(Inspector::builder(&client).limits(limits).build().walk("/")).await.unwrap()
        };
        for nodes in [50, 200, 400, 799] {
            let survey = walk(nodes).await;
            let is_held = |report: &&docent::inspect::Report| match &report.recipe {
                Recipe::Mutex(line) => line.holders().all(|holder| holder.session.is_some() && holder.identity.is_some()),
                _ => false,
            };
            let shown = survey.found.len();
            assert_eq!(survey.found.iter().filter(is_held).count(), shown, "{nodes}");
            assert!(shown >= nodes / 2 - 10 && survey.nodes <= nodes, "{nodes}: {shown} of {}", survey.nodes);
            assert_eq!(shown + survey.left_out.nodes, 400, "{nodes}");
            let first = (0..shown).map(|number| format!("/locks/n{number:03}")).collect::<Vec<_>>();
            assert_eq!(survey.found.iter().map(|it| it.path.clone()).collect::<Vec<_>>(), first);
        }
        assert!(walk(810).await.left_out.is_empty());
    }

    async fn a_long_line_is_read_up_to_the_limit_the_first_first(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        soon(client.create("/m", "", CreateMode::Persistent)).await.unwrap();
        let line = (0..500).fold(client.transaction(), |line, number: u32| {
            let id = format!("{:032x}", 500 - number);
            line.create(&format!("/m/_c_{id}-lock-"), "10.0.0.7", CreateMode::EphemeralSequential)
        });
        soon(line.commit()).await.unwrap();
        let limits = Limits::default().nodes(101).data_bytes(80);
        let report = soon(Inspector::builder(&client).limits(limits).build().path("/m")).await.unwrap();
        let Recipe::Mutex(line) = &report.recipe else { panic!("{report:?}") };
        assert_eq!((line.contenders.len(), report.left_out.nodes), (500, 400));
        let read = line.contenders.iter().take_while(|one| one.session.is_some()).count();
        assert_eq!((read, line.contenders.iter().filter(|one| one.since.is_some()).count()), (100, 100));
        assert!(report.left_out.data > 0, "{:?}", report.left_out);
    }
}
