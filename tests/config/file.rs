//! The local snapshot file.

use crate::limits::{Limits, in_range, json, limits};
use crate::support::{PATH, config, next, until, until_stale};
use docent::config::{Change, Origin, SubscribeError};
use docent::{Client, Config};
use docent_battery::{Backend, Proxy, TestServer, both_backends};
use docent_tests::{builder, connect, soon};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

fn saved_in(client: &Client, file: &Path) -> Config<Limits> {
    Config::builder(client, PATH)
        .validate(in_range)
        .snapshot_file(file)
        .fallback_after(Duration::from_millis(100))
        .build()
        .unwrap()
}

/// Waits until the file contains this value.
async fn until_saved(file: &Path, per_second: u32) {
    until_ends(file, &json(per_second)).await;
}

/// Waits until the file ends with this text.
async fn until_ends(file: &Path, wanted: &str) {
    soon(async {
        while !fs::read_to_string(file).is_ok_and(|text| text.ends_with(wanted)) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

/// A client, and a file that does not exist yet.
struct Scene {
    server: TestServer,
    folder: TempDir,
    file: PathBuf,
    client: Client,
    /// Publishes values, and does not use the file.
    operator: Config<Limits>,
}

impl Scene {
    async fn new(backend: Backend) -> Self {
        let server = backend.start().await;
        let folder = tempfile::tempdir().unwrap();
        let client = connect(&server).await;
        Self { file: folder.path().join("limits"), operator: config(&client), server, folder, client }
    }

    /// Creates a file that contains the value 1, as the servers do, and returns its text.
    async fn saved(backend: Backend) -> (Self, String) {
        let scene = Self::new(backend).await;
        soon(scene.operator.publish(&limits(1))).await.unwrap();
        drop(soon(scene.config().subscribe()).await.unwrap());
        until_saved(&scene.file, 1).await;
        let text = fs::read_to_string(&scene.file).unwrap();
        (scene, text)
    }

    fn config(&self) -> Config<Limits> {
        saved_in(&self.client, &self.file)
    }

    /// Creates a proxy that lets no link through.
    async fn cut_off(&self) -> Proxy {
        let proxy = self.server.proxy().await;
        proxy.cut().await;
        proxy
    }
}

both_backends! {
    async fn a_service_starts_from_the_file_during_an_outage_and_converges(backend: Backend) {
        let (scene, _) = Scene::saved(backend).await;
        let Scene { server, file, operator, .. } = &scene;
        let client = connect(server).await;
        let subscription = soon(saved_in(&client, file).subscribe()).await.unwrap();
        assert!(!subscription.current().is_provisional());
        soon(operator.publish(&limits(2))).await.unwrap();
        until(&subscription, 2).await;
        until_saved(file, 2).await;
        soon(client.close()).await;

        // After a restart no server answers.
        let proxy = scene.cut_off().await;
        let client = builder(server, proxy.connect_string()).build().unwrap();
        let config = saved_in(&client, file);
        let mut subscription = soon(config.subscribe()).await.unwrap();
        let current = subscription.current();
        assert_eq!((current.per_second, current.origin()), (2, Origin::File));
        assert!(current.is_provisional() && subscription.is_stale());
        assert_eq!(current.revision().unwrap().version, 1);
        soon(operator.publish(&limits(3))).await.unwrap();
        proxy.heal().await.unwrap();
        assert_eq!(next(&mut subscription).await.per_second, 3);
        until_stale(&subscription, false).await;
        until_saved(file, 3).await;
        let mut other = subscription.clone();
        soon(operator.publish(&limits(4))).await.unwrap();
        assert_eq!(next(&mut subscription).await.per_second, 4);
        assert_eq!(next(&mut other).await.per_second, 4);
    }

    async fn any_value_of_the_servers_replaces_that_of_the_file(backend: Backend) {
        let (scene, text) = Scene::saved(backend).await;
        let Scene { server, file, operator, .. } = &scene;
        // The file's revision is higher than the servers', as after the servers were set up from scratch.
        let mzxid = soon(operator.get()).await.unwrap().unwrap().revision().unwrap().mzxid;
        let text = text.replace(&format!("\"mzxid\":{mzxid}"), "\"mzxid\":9000000000000000000").replace(&json(1), &json(7));
        fs::write(file, text).unwrap();
        let proxy = scene.cut_off().await;
        let late = builder(server, proxy.connect_string()).build().unwrap();
        let mut subscription = soon(saved_in(&late, file).subscribe()).await.unwrap();
        assert_eq!(subscription.current().per_second, 7);
        proxy.heal().await.unwrap();
        let snapshot = next(&mut subscription).await;
        assert_eq!((snapshot.per_second, snapshot.origin()), (1, Origin::Server));
    }

    async fn an_invalid_file_is_rejected(backend: Backend) {
        let (scene, good) = Scene::saved(backend).await;
        let Scene { server, folder, file, client, .. } = &scene;
        let proxy = scene.cut_off().await;
        let refused = async |why: &str| {
            let settings = builder(server, proxy.connect_string()).operation_timeout(Duration::from_millis(300));
            let refused = soon(saved_in(&settings.build().unwrap(), file).subscribe()).await;
            assert!(matches!(&refused, Err(SubscribeError::Core(error)) if error.is_retryable()), "{why}: {refused:?}");
        };
        for bad in ["".to_owned(), "nonsense".to_owned(), good.replace(&json(1), &json(0)), good.replace(PATH, "/other")] {
            fs::write(file, &bad).unwrap();
            refused(&bad).await;
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::write(file, &good).unwrap();
            fs::set_permissions(file, fs::Permissions::from_mode(0o622)).unwrap();
            refused("others may write to it").await;
        }
        // An invalid file is not an error while the servers answer, and is then rewritten.
        let subscription = soon(scene.config().subscribe()).await.unwrap();
        assert_eq!((subscription.current().per_second, subscription.current().origin()), (1, Origin::Server));
        until_ends(file, &good).await;
        // A missing folder is not an error either.
        let nowhere = folder.path().join("no/such/folder");
        assert_eq!(soon(saved_in(client, &nowhere).subscribe()).await.unwrap().current().per_second, 1);
    }

    async fn a_file_of_another_namespace_is_rejected_and_does_not_block_the_own_value(backend: Backend) {
        let (scene, staging) = Scene::saved(backend).await;
        let Scene { server, file, .. } = &scene;
        let elsewhere = |connect: &str| builder(server, connect).namespace(server.path("production"));
        // No server answers. The service must not start with the value of another environment.
        let proxy = scene.cut_off().await;
        let disconnected = elsewhere(&proxy.connect_string()).operation_timeout(Duration::from_millis(300)).build().unwrap();
        let refused = soon(saved_in(&disconnected, file).subscribe()).await;
        assert!(matches!(&refused, Err(SubscribeError::Core(error)) if error.is_retryable()), "{refused:?}");
        // The servers answer. The service starts with its own value, which replaces the one in the file.
        let client = soon(elsewhere(&server.connect_string()).connect()).await.unwrap();
        soon(config(&client).publish(&limits(7))).await.unwrap();
        let subscription = soon(saved_in(&client, file).subscribe()).await.unwrap();
        assert_eq!((subscription.current().per_second, subscription.current().origin()), (7, Origin::Server));
        until_saved(file, 7).await;
        assert_ne!(fs::read_to_string(file).unwrap(), staging);
    }

    async fn a_deleted_value_stays_in_the_file_which_only_its_owner_may_access(backend: Backend) {
        let (scene, _) = Scene::saved(backend).await;
        let Scene { file, client, operator, .. } = &scene;
        let mut subscription = soon(scene.config().subscribe()).await.unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
        }
        // An invalid value is not saved.
        client.set(PATH, json(0), None).await.unwrap();
        assert!(matches!(soon(subscription.changed()).await, Some(Ok(Change::Refused(_)))));
        soon(operator.delete()).await.unwrap();
        assert!(matches!(soon(subscription.changed()).await, Some(Ok(Change::Deleted))));
        drop(subscription);
        // After a restart the service continues with the last valid value.
        let mut subscription = soon(scene.config().subscribe()).await.unwrap();
        assert_eq!(subscription.current().per_second, 1);
        assert!(subscription.current().is_provisional());
        assert!(matches!(soon(subscription.changed()).await, Some(Ok(Change::Deleted))));
    }

    async fn the_last_of_many_values_is_the_one_in_the_file(backend: Backend) {
        let (scene, _) = Scene::saved(backend).await;
        let Scene { folder, file, client, .. } = &scene;
        let operator = Config::<Limits>::builder(client, PATH).history(0).build().unwrap();
        let _subscription = soon(scene.config().subscribe()).await.unwrap();
        for value in 2..=200 {
            operator.publish(&limits(value)).await.unwrap();
        }
        until_saved(file, 200).await;
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    async fn the_last_value_is_saved_even_after_the_last_subscription_is_dropped(backend: Backend) {
        let (scene, _) = Scene::saved(backend).await;
        let Scene { folder, file, .. } = &scene;
        let config = scene.config();
        for round in 0..20 {
            let mut subscription = soon(config.subscribe()).await.unwrap();
            for step in 1..4 {
                let value = 10 * round + step + 1;
                soon(config.publish(&limits(value))).await.unwrap();
                while subscription.current().per_second != value {
                    let _ = soon(subscription.changed()).await;
                }
            }
            drop(subscription);
            until_saved(file, 10 * round + 4).await;
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no other file is left in the folder");
    }

    async fn two_subscribers_of_a_value_may_share_the_file(backend: Backend) {
        let (scene, _) = Scene::saved(backend).await;
        let (first, second) = (scene.config(), saved_in(&connect(&scene.server).await, &scene.file));
        let _subscriptions = [soon(first.subscribe()).await.unwrap(), soon(second.subscribe()).await.unwrap()];
        for value in 2..=50 {
            soon(scene.operator.publish(&limits(value))).await.unwrap();
        }
        until_saved(&scene.file, 50).await;
        soon(async { while fs::read_dir(scene.folder.path()).unwrap().count() > 1 { docent_tests::pause().await; } }).await;
        until_saved(&scene.file, 50).await;
    }

    async fn a_pipe_at_the_path_of_the_file_blocks_no_one(backend: Backend) {
        let scene = Scene::new(backend).await;
        assert!(std::process::Command::new("mkfifo").arg(&scene.file).status().unwrap().success());
        let started = tokio::time::Instant::now();
        assert!(matches!(soon(scene.config().subscribe()).await, Err(SubscribeError::Missing { .. })));
        assert!(started.elapsed() < Duration::from_secs(4), "opening the file did not wait for a writer");
    }
}
