//! Earlier values, and rollback to them.

use crate::limits::{Limits, in_range, json, limits};
use crate::support::{PATH, config};
use docent::config::{PublishError, SubscribeError};
use docent::node::{Acl, Permissions};
use docent::{Client, Config, CreateMode};
use docent_battery::{Backend, both_backends};
use docent_proto::OpCode;
use docent_tests::{connect, soon};

fn keeping(client: &Client, length: usize) -> Config<Limits> {
    Config::builder(client, PATH).history(length).validate(in_range).build().unwrap()
}

/// Returns the values of the history, latest first, with `None` for an unreadable value.
async fn past(config: &Config<Limits>) -> Vec<Option<u32>> {
    let past = soon(config.history()).await.unwrap();
    assert!(past.is_sorted_by(|one, next| one.revision.mzxid > next.revision.mzxid));
    past.into_iter().map(|past| past.value.ok().map(|limits| limits.per_second)).collect()
}

both_backends! {
    async fn the_history_keeps_only_the_last_values(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let config = keeping(&client, 3);
        assert!(past(&config).await.is_empty());
        let mut revisions = Vec::new();
        for value in 1..=6 {
            revisions.push(soon(config.publish(&limits(value))).await.unwrap().revision().unwrap());
        }
        assert_eq!(past(&config).await, [Some(5), Some(4), Some(3)]);
        let kept: Vec<_> = soon(config.history()).await.unwrap().iter().map(|past| past.revision).collect();
        revisions.truncate(5);
        revisions.reverse();
        assert_eq!(kept, revisions[..3]);
        // A shorter history deletes surplus values. A history of length 0 keeps them.
        soon(keeping(&client, 0).publish(&limits(7))).await.unwrap();
        assert_eq!(past(&config).await.len(), 3);
        let at_least = |length| {
            Config::builder(&client, PATH).history(length).keep_longer_history().build().unwrap()
        };
        soon(at_least(1).publish(&limits(8))).await.unwrap();
        assert_eq!(past(&config).await, [Some(7), Some(5), Some(4)]);
        soon(at_least(5).publish(&limits(7))).await.unwrap();
        assert_eq!(past(&config).await, [Some(8), Some(7), Some(5), Some(4)]);
        soon(keeping(&client, 1).publish(&limits(9))).await.unwrap();
        assert_eq!(past(&config).await, [Some(7)]);
    }

    async fn values_of_other_clients_are_kept_byte_for_byte(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let config = config(&client);
        soon(config.publish(&limits(1))).await.unwrap();
        client.set(PATH, "{ \"per_second\": 2, \"unknown\": [] }", None).await.unwrap();
        soon(config.publish(&limits(3))).await.unwrap();
        client.set(PATH, "not json", None).await.unwrap();
        soon(config.publish(&limits(4))).await.unwrap();
        // The history does not contain a value that was written and replaced without this API.
        assert_eq!(past(&config).await, [None, Some(2)]);
        let two = soon(config.history()).await.unwrap()[1].revision;
        soon(config.rollback(&two)).await.unwrap();
        assert_eq!(client.get(PATH).await.unwrap().data, "{ \"per_second\": 2, \"unknown\": [] }");
    }

    async fn rolling_back_publishes_an_earlier_value_again(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let config = config(&client);
        for value in [1, 2, 3] {
            soon(config.publish(&limits(value))).await.unwrap();
        }
        let before = soon(config.get()).await.unwrap().unwrap().revision().unwrap();
        let first = soon(config.history()).await.unwrap()[1].revision;
        let back = soon(config.rollback(&first)).await.unwrap();
        assert_eq!(back.per_second, 1);
        assert!(back.revision().unwrap().mzxid > before.mzxid);
        assert_eq!(client.get(PATH).await.unwrap().data, json(1));
        assert_eq!(past(&config).await, [Some(3), Some(2), Some(1)]);
        // The current value is not in the history, and neither is a value of a deleted node.
        let present = back.revision().unwrap();
        assert!(matches!(soon(config.rollback(&present)).await, Err(PublishError::NoSuchRevision)));
        soon(config.delete()).await.unwrap();
        assert!(matches!(soon(config.rollback(&first)).await, Err(PublishError::NoSuchRevision)));
    }

    async fn an_earlier_value_that_is_now_invalid_is_not_restored(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let unchecked = Config::<Limits>::new(&client, PATH).unwrap();
        for value in [0, 2] {
            soon(unchecked.publish(&limits(value))).await.unwrap();
        }
        let config = config(&client);
        let zero = &soon(config.history()).await.unwrap()[0];
        assert!(zero.value.is_err());
        assert!(matches!(soon(config.rollback(&zero.revision)).await, Err(PublishError::Refused(_))));
        assert_eq!(client.get(PATH).await.unwrap().data, json(2));
    }

    async fn foreign_nodes_in_the_history_are_left_alone(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let config = keeping(&client, 1);
        soon(config.publish(&limits(1))).await.unwrap();
        let foreign = format!("{PATH}/_history/foreign");
        client.create(&foreign, "", CreateMode::Persistent).await.unwrap();
        for value in [2, 3, 4] {
            soon(config.publish(&limits(value))).await.unwrap();
        }
        assert_eq!(past(&config).await, [Some(3)]);
        assert!(client.exists(&foreign).await.unwrap().is_some());
        assert!(soon(config.delete()).await.unwrap());
    }

    async fn a_node_below_an_earlier_value_blocks_no_publish(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let config = keeping(&client, 2);
        for value in 1..=3 {
            soon(config.publish(&limits(value))).await.unwrap();
        }
        let mut entries = client.children(&format!("{PATH}/_history")).await.unwrap().names;
        entries.sort();
        for stray in ["stray", "stray/deep"] {
            let path = format!("{PATH}/_history/{}/{stray}", entries[0]);
            client.create(&path, "theirs", CreateMode::Persistent).await.unwrap();
        }
        for value in 4..=7 {
            soon(config.publish(&limits(value))).await.unwrap();
        }
        assert_eq!(client.get(PATH).await.unwrap().data, json(7));
        // The entry stays because it has child nodes, and later values are recorded as usual.
        assert_eq!(past(&config).await, [Some(6), Some(5), Some(1)]);
        let stray = format!("{PATH}/_history/{}/stray", entries[0]);
        assert_eq!(client.get(&format!("{stray}/deep")).await.unwrap().data, "theirs");
        client.delete(&format!("{stray}/deep"), None).await.unwrap();
        client.delete(&stray, None).await.unwrap();
        soon(config.publish(&limits(8))).await.unwrap();
        assert_eq!(past(&config).await, [Some(7), Some(6)]);
    }

    async fn nodes_below_every_earlier_value_block_no_publish(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        for value in 1..=12 {
            soon(keeping(&client, 20).publish(&limits(value))).await.unwrap();
        }
        let entries = client.children(&format!("{PATH}/_history")).await.unwrap().names;
        for entry in &entries {
            client.create(&format!("{PATH}/_history/{entry}/stray"), "", CreateMode::Ephemeral).await.unwrap();
        }
        let config = keeping(&client, 1);
        for value in 13..=15 {
            soon(config.publish(&limits(value))).await.unwrap();
        }
        let (kept, entries) = (past(&config).await, entries.len());
        assert_eq!((kept[0], kept.len()), (Some(14), entries + 1));
    }

    async fn a_history_that_may_not_be_written_blocks_no_publish(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let config = keeping(&client, 2);
        for value in 1..=3 {
            soon(config.publish(&limits(value))).await.unwrap();
        }
        let folder = format!("{PATH}/_history");
        let read = Permissions::READ | Permissions::ADMIN;
        for (value, allowed) in [
            (4, read | Permissions::CREATE),
            (5, read | Permissions::DELETE),
            (6, Permissions::ADMIN | Permissions::CREATE | Permissions::DELETE),
        ] {
            client.set_acl(&folder, [Acl::new(allowed, "world", "anyone")], None).await.unwrap();
            assert_eq!(soon(config.publish(&limits(value))).await.unwrap().per_second, value);
            client.set_acl(&folder, [Acl::open_unsafe()], None).await.unwrap();
            // The replaced value is recorded even if no old entry can be deleted.
            assert_eq!(past(&config).await, [Some(3), Some(2), Some(1)], "{value}");
        }
        soon(config.publish(&limits(7))).await.unwrap();
        assert_eq!(past(&config).await, [Some(6), Some(3)]);
    }

    async fn rolling_back_reads_one_earlier_value(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let config = keeping(&client, 20);
        let first = soon(config.publish(&limits(1))).await.unwrap().revision().unwrap();
        for value in 2..=20 {
            soon(config.publish(&limits(value))).await.unwrap();
        }
        let before = server.front().trace().len();
        assert_eq!(soon(config.rollback(&first)).await.unwrap().per_second, 1);
        let trace = server.front().trace().split_off(before);
        let reads = trace.iter().filter(|frame| frame.is_request(OpCode::GetData)).count();
        assert_eq!(reads, 1, "only the earlier value is read, because the current one is known");
    }

    async fn a_rollback_from_a_seen_revision_overwrites_nothing_newer(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let config = config(&client);
        let first = soon(config.publish(&limits(1))).await.unwrap().revision().unwrap();
        let seen = soon(config.publish(&limits(2))).await.unwrap().revision().unwrap();
        soon(config.publish(&limits(3))).await.unwrap();
        assert!(matches!(soon(config.rollback_if(&first, &seen)).await, Err(PublishError::Conflict)));
        assert_eq!(client.get(PATH).await.unwrap().data, json(3));
        // The rejection of an invalid value provides its revision.
        client.set(PATH, "bad", None).await.unwrap();
        let Err(SubscribeError::Refused { rejection: refusal, .. }) = soon(config.get()).await else { panic!("an invalid value was accepted") };
        let bad = refusal.revision().unwrap();
        let back = soon(config.rollback_if(&first, &bad)).await.unwrap();
        assert_eq!((back.per_second, client.get(PATH).await.unwrap().data), (1, json(1).into()));
        assert!(matches!(soon(config.rollback_if(&first, &bad)).await, Err(PublishError::Conflict)));
        let now = back.revision().unwrap();
        assert!(matches!(soon(config.rollback_if(&now, &now)).await, Err(PublishError::NoSuchRevision)));
        // A rollback does not restore a deleted node, because the history was deleted with the node.
        soon(config.delete()).await.unwrap();
        assert!(matches!(soon(config.rollback_if(&first, &now)).await, Err(PublishError::NoSuchRevision)));
    }

    async fn publishers_with_histories_do_not_conflict(backend: Backend) {
        let server = backend.start().await;
        let mut publishers = Vec::new();
        for number in 0..3 {
            let config = keeping(&connect(&server).await, 2);
            publishers.push(tokio::spawn(async move {
                for value in 1..=8 {
                    config.publish(&limits(number * 100 + value)).await.unwrap();
                }
            }));
        }
        for publisher in publishers {
            soon(publisher).await.unwrap();
        }
        let client = connect(&server).await;
        assert_eq!(client.get(PATH).await.unwrap().stat.version, 23);
        assert_eq!(past(&keeping(&client, 2)).await.len(), 2);
    }
}
