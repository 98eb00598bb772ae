//! Readers that report which revision they run.

use crate::limits::{Limits, limits};
use crate::support::{PATH, config, next, until as until_value};
use docent::config::{PublishError, Running, Snapshot};
use docent::node::{Acl, Permissions};
use docent::{Client, Config, ConfigTree, CreateMode, ErrorKind};
use docent_battery::{Backend, Direction, Flow, Rule, both_backends};
use docent_proto::OpCode;
use docent_tests::{builder, connect, soon, until};
use serde_json::Value;

const WEB_1: &str = "/config/limits/_running/web-1";

/// Returns the version that the reader at `path` reports, or `None` if there is no report.
async fn version(client: &Client, path: &str) -> Option<i64> {
    match client.get(path).await {
        Ok(node) => serde_json::from_slice::<Value>(&node.data).unwrap()["version"].as_i64(),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::NoNode);
            None
        }
    }
}

/// Waits until the reader `web-1` reports this version, or nothing.
async fn until_version(client: &Client, wanted: Option<i64>) {
    until(async || version(client, WEB_1).await == wanted).await;
}

async fn publish(client: &Client, value: u32) -> Snapshot<Limits> {
    soon(config(client).publish(&limits(value))).await.unwrap()
}

/// Publishes a value, and reports it as `web-1` from `reader`.
async fn report(operator: &Client, reader: &Client) -> Running {
    let running = config(reader).report_as("web-1").unwrap();
    running.set(&publish(operator, 1).await).unwrap();
    until(async || version(operator, WEB_1).await.is_some()).await;
    running
}

both_backends! {
    async fn a_reader_reports_the_revision_that_it_has_applied(backend: Backend) {
        let server = backend.start().await;
        let (operator, reader) = (connect(&server).await, connect(&server).await);
        let first = publish(&operator, 1).await.revision().unwrap();
        let config = config(&reader);
        let mut subscription = soon(config.subscribe()).await.unwrap();
        let running = config.report_as("web-1").unwrap();
        assert_eq!(running.path(), WEB_1);
        running.set(&subscription.current()).unwrap();
        until_version(&operator, Some(0)).await;
        let node = operator.get(WEB_1).await.unwrap();
        assert_eq!(node.stat.owner, reader.session_id());
        let data: Value = serde_json::from_slice(&node.data).unwrap();
        assert_eq!((data["mzxid"].as_i64(), data["czxid"].as_i64()), (Some(first.mzxid), Some(first.czxid)));

        publish(&operator, 2).await;
        let second = next(&mut subscription).await;
        running.set(&second).unwrap();
        until_version(&operator, Some(1)).await;
        // The report affects no publish, and no subscription.
        publish(&operator, 3).await;
        assert_eq!(next(&mut subscription).await.per_second, 3);
        assert_eq!(soon(config.history()).await.unwrap().len(), 2);
    }

    async fn each_revision_is_written_once(backend: Backend) {
        let server = backend.start().await;
        let (operator, reader) = (connect(&server).await, connect(&server).await);
        let running = report(&operator, &reader).await;
        let second = publish(&operator, 2).await;
        running.set(&second).unwrap();
        until_version(&operator, Some(1)).await;
        running.set(&second).unwrap();
        running.set(&publish(&operator, 3).await).unwrap();
        until_version(&operator, Some(2)).await;
        assert_eq!(operator.get(WEB_1).await.unwrap().stat.version, 2);
    }

    async fn a_report_ends_with_its_handle(backend: Backend) {
        let server = backend.start().await;
        let (operator, reader) = (connect(&server).await, connect(&server).await);
        let running = report(&operator, &reader).await;
        drop(running);
        until_version(&operator, None).await;
        // The id can be used again immediately, also before the node is deleted.
        for value in [2, 3] {
            let running = config(&reader).report_as("web-1").unwrap();
            running.set(&publish(&operator, value).await).unwrap();
            until_version(&operator, Some(i64::from(value) - 1)).await;
        }
        let running = config(&reader).report_as("web-1").unwrap();
        let fourth = publish(&operator, 4).await;
        running.set(&fourth).unwrap();
        until_version(&operator, Some(3)).await;
        let second = config(&reader).report_as("web-1").unwrap();
        assert_eq!(second.set(&fourth).unwrap_err().kind(), ErrorKind::AlreadyRegistered);
        soon(reader.close()).await;
        until_version(&operator, None).await;
        drop(running);
        assert_eq!(second.set(&fourth).unwrap_err().kind(), ErrorKind::Closed);
    }

    async fn a_report_ends_with_its_session_and_begins_again_in_the_next(backend: Backend) {
        let server = backend.start().await;
        let (operator, reader) = (connect(&server).await, connect(&server).await);
        let _running = report(&operator, &reader).await;
        let session = reader.session_id().unwrap();
        server.expire(session).await.unwrap();
        until(async || match operator.get(WEB_1).await {
            Ok(node) => node.stat.owner.is_some_and(|owner| owner != session),
            Err(_) => false,
        })
        .await;
        assert_eq!(version(&operator, WEB_1).await, Some(0));
        // So does one whose node another client has deleted.
        operator.delete(WEB_1, None).await.unwrap();
        until_version(&operator, Some(0)).await;
    }

    async fn a_restarted_reader_takes_over_its_id(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let killed = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let (operator, restarted) = (connect(&server).await, connect(&server).await);
        let _old = report(&operator, &killed).await;
        let session = killed.session_id().unwrap();
        // From now on, the servers receive nothing from the killed process.
        proxy.set_flow(Direction::ToServer, Flow::Hold);
        let running = config(&restarted).report_as("web-1").unwrap();
        running.set(&publish(&operator, 2).await).unwrap();
        server.expire(session).await.unwrap();
        until_version(&operator, Some(1)).await;
        assert_eq!(operator.get(WEB_1).await.unwrap().stat.owner, restarted.session_id());
    }

    async fn deleting_a_value_takes_the_reports_with_it(backend: Backend) {
        let server = backend.start().await;
        let (operator, reader) = (connect(&server).await, connect(&server).await);
        let running = report(&operator, &reader).await;
        publish(&operator, 2).await;
        assert!(soon(config(&operator).delete()).await.unwrap());
        reader.sync(PATH).await.unwrap();
        // The reader does not re-create the value's node.
        assert!(reader.exists(PATH).await.unwrap().is_none());
        running.set(&publish(&operator, 3).await).unwrap();
        until_version(&operator, Some(0)).await;
        assert_eq!(soon(config(&reader).get()).await.unwrap().unwrap().per_second, 3);
        // Nodes of others below the folder are left alone.
        operator.create(&format!("{PATH}/_running/theirs"), "", CreateMode::Persistent).await.unwrap();
        operator.create(&format!("{PATH}/_running/theirs/deep"), "", CreateMode::Persistent).await.unwrap();
        let Err(PublishError::Core(error)) = soon(config(&operator).delete()).await else { panic!() };
        assert_eq!(error.kind(), ErrorKind::NotEmpty);
    }

    async fn a_reader_that_waits_for_its_predecessor_does_not_re_create_a_deleted_value(backend: Backend) {
        let server = backend.start().await;
        let (operator, first, second) = (connect(&server).await, connect(&server).await, connect(&server).await);
        let _first = report(&operator, &first).await;
        let running = config(&second).report_as("web-1").unwrap();
        running.set(&publish(&operator, 2).await).unwrap();
        assert!(soon(config(&operator).delete()).await.unwrap());
        for _ in 0..50 {
            second.sync(PATH).await.unwrap();
            assert_eq!(second.exists(PATH).await.unwrap(), None);
        }
        running.set(&publish(&operator, 3).await).unwrap();
        until(async || operator.get(WEB_1).await.is_ok()).await;
    }

    async fn a_value_is_deleted_with_the_report_of_a_reader_that_begins_meanwhile(backend: Backend) {
        let server = backend.start().await;
        let (reader, proxy) = (connect(&server).await, server.proxy().await);
        let operator = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let first = publish(&operator, 1).await;
        let running = config(&reader).report_as("web-1").unwrap();
        let deletion = proxy.add(Rule::on(OpCode::Multi).path(|path| path.ends_with(PATH)).hold());
        let delete = config(&operator).delete();
        let report = async {
            soon(deletion.fired()).await;
            running.set(&first).unwrap();
            until_version(&reader, Some(0)).await;
            proxy.heal().await.unwrap();
        };
        let (deleted, ()) = tokio::join!(soon(delete), report);
        assert!(deleted.unwrap());
        reader.sync(PATH).await.unwrap();
        assert_eq!(reader.exists(PATH).await.unwrap(), None);
    }

    async fn a_reader_without_permission_follows_the_value_all_the_same(backend: Backend) {
        let server = backend.start().await;
        let (operator, reader) = (connect(&server).await, connect(&server).await);
        let first = publish(&operator, 1).await;
        let all_but_create = Permissions::READ | Permissions::WRITE | Permissions::ADMIN;
        operator.set_acl(PATH, [Acl::new(all_but_create, "world", "anyone")], None).await.unwrap();
        let running = config(&reader).report_as("web-1").unwrap();
        running.set(&first).unwrap();
        let subscription = soon(config(&reader).subscribe()).await.unwrap();
        operator.set(PATH, "{\"per_second\":2}", None).await.unwrap();
        until_value(&subscription, 2).await;
        assert_eq!(version(&operator, WEB_1).await, None);
        operator.set_acl(PATH, [Acl::open_unsafe()], None).await.unwrap();
        running.set(&subscription.current()).unwrap();
        until_version(&operator, Some(1)).await;
    }

    async fn a_default_value_is_not_reported(backend: Backend) {
        let server = backend.start().await;
        let (operator, reader) = (connect(&server).await, connect(&server).await);
        let with_default = Config::builder(&reader, PATH).default_value(limits(9)).build().unwrap();
        let subscription = soon(with_default.subscribe()).await.unwrap();
        let initial = subscription.current();
        let running = with_default.report_as("web-1").unwrap();
        running.set(&initial).unwrap();
        reader.sync(PATH).await.unwrap();
        assert!(reader.exists(PATH).await.unwrap().is_none());
        running.set(&publish(&operator, 1).await).unwrap();
        until_version(&operator, Some(0)).await;
        running.set(&initial).unwrap();
        until_version(&operator, None).await;
    }

    async fn reports_are_no_keys_of_a_folder(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let tree = ConfigTree::<u32>::new(&client, "/config").unwrap();
        let key = tree.key("limits").unwrap();
        let published = soon(key.publish(&1)).await.unwrap();
        let running = key.report_as("web-1").unwrap();
        running.set(&published).unwrap();
        until_version(&client, Some(0)).await;
        let subscription = soon(tree.subscribe()).await.unwrap();
        let keys: Vec<_> = subscription.current().iter().map(|(key, _)| key.to_string()).collect();
        assert_eq!(keys, ["limits"]);
    }

    async fn an_id_is_one_segment_of_a_path(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let config = config(&client);
        for id in ["", "a/b", "/", ".", "..", "a\0", "_docent"] {
            let error = config.report_as(id).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{id:?}");
            assert!(error.to_string().contains(&format!("{id:?}").replace('"', "")), "{error}");
        }
        assert!(config.report_as("web-1.example.org:8080").is_ok());
    }
}
