//! Nodes that may not be read, and an inspector that writes nothing.

use docent::inspect::{Inspector, Kind, Recipe, Report, TimeSource};
use docent::node::Acl;
use docent::{CreateMode, Mutex};
use docent_battery::{Backend, both_backends};
use docent_tests::{builder, connect, own_nodes, soon, until};

both_backends! {
    async fn a_node_that_may_not_be_read_is_named_and_harms_nothing_else(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let owner = builder(&server, server.connect_string())
            .auth_digest("owner", "secret")
            .allow_plaintext_auth()
            .acl([Acl::creator_all()])
            .connect()
            .await
            .unwrap();
        let _first = soon(Mutex::new(&client, "/m").unwrap().acquire()).await.unwrap();
        let secret = tokio::spawn(Mutex::new(&owner, "/m").unwrap().acquire());
        soon(owner.create("/secret", "", CreateMode::Persistent)).await.unwrap();
        let inspector = Inspector::new(&client);
        until(async || client.children("/m").await.unwrap().names.len() == 2).await;

        let report = soon(inspector.path("/m")).await.unwrap();
        let Recipe::Mutex(line) = &report.recipe else { panic!("{report:?}") };
        assert_eq!((line.contenders.len(), report.refused.len()), (2, 1));
        assert_eq!(line.contenders[1].waits_for.as_ref(), Some(&line.contenders[0].name));
        assert!(line.contenders[1].session.is_none() && line.contenders[0].session.is_some());
        assert!(report.refused[0].path.ends_with(&line.contenders[1].name));

        let survey = soon(inspector.walk("/")).await.unwrap();
        let refused: Vec<_> = survey.refused.iter().map(|it| it.path.as_str()).collect();
        assert_eq!(refused, [report.refused[0].path.as_str(), "/secret"]);
        assert_eq!(survey.found.iter().map(Report::kind).collect::<Vec<_>>(), [Kind::Mutex]);
        assert_eq!(soon(inspector.path("/secret")).await.unwrap().kind(), Kind::Unreadable);
        secret.abort();
    }

    async fn a_read_only_inspector_creates_nothing_and_reports_its_time_source(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        soon(client.create("/v", "text", CreateMode::Persistent)).await.unwrap();
        let report = soon(Inspector::builder(&client).read_only().build().path("/v")).await.unwrap();
        let clock = report.clock.unwrap();
        assert_eq!(clock.source, TimeSource::NewestStat);
        assert_eq!(clock.now, client.get("/v").await.unwrap().stat.modified);
        assert_eq!(client.exists("/_docent").await.unwrap(), None);

        let report = soon(Inspector::new(&client).path("/v")).await.unwrap();
        assert_eq!(report.clock.unwrap().source, TimeSource::OwnNode);
        // The inspector leaves nothing behind except the session's marker.
        until(async || own_nodes(&client).await.len() == 1).await;
    }
}
