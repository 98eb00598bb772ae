//! Verbs at paths that are in use by another recipe, and at paths that may not be read.

use crate::docent_command::{run, run_with, servers};
use docent::node::{Acl, CreateMode, Permissions};
use docent::{Client, Mutex};
use docent_battery::{Backend, both_backends_in_real_time};

both_backends_in_real_time! {
    async fn a_lock_that_is_held_is_not_hidden_by_a_value_or_by_items(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = Client::connect(&connect).await.unwrap();
        let guard = Mutex::new(&client, "/a").unwrap().acquire().await.unwrap();
        for verb in [&["config", "set", "/a", "x"][..], &["queue", "put", "/a", "x"], &["queue", "len", "/a"]] {
            let refused = run(&connect, verb).await;
            assert_eq!((refused.code, refused.stdout.len()), (1, 0), "{verb:?}: {refused:?}");
            assert!(refused.stderr.contains("/a is of kind mutex"), "{verb:?}: {}", refused.stderr);
        }
        let shown = run(&connect, ["inspect", "/a", "-o", "json"]).await.ok().json();
        assert_eq!(shown[0]["kind"], "mutex", "{}", shown[0]);
        guard.release().await.unwrap();
        client.close().await;
    }

    async fn a_queue_of_another_layout_is_not_taken_for_an_empty_one(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = Client::connect(&connect).await.unwrap();
        // An item of kazoo's `Queue`.
        client.create("/q/entry-100-0000000000", "item", CreateMode::Persistent).await.unwrap();
        for verb in [&["len", "/q"][..], &["put", "/q", "x"], &["take", "/q", "--nonblock"], &["dead", "/q"]] {
            let refused = run(&connect, ["queue"].iter().chain(verb)).await;
            assert_eq!((refused.code, refused.stdout.len()), (1, 0), "{verb:?}: {refused:?}");
            assert!(refused.stderr.contains("another layout"), "{verb:?}: {}", refused.stderr);
        }
        assert_eq!(client.children("/q").await.unwrap().names, ["entry-100-0000000000"]);
        client.close().await;
    }

    async fn a_queue_that_may_not_be_read_is_not_reported_as_empty_and_takes_items(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = Client::connect(&connect).await.unwrap();
        run_with(&connect, ["queue", "put", "/q"], "a\n").await.ok();
        let mut write_only = Acl::open_unsafe();
        write_only.permissions = Permissions::CREATE | Permissions::DELETE | Permissions::ADMIN;
        client.set_acl("/q", [write_only], None).await.unwrap();
        for verb in ["len", "dead", "peek"] {
            let refused = run(&connect, ["queue", verb, "/q"]).await;
            assert_eq!((refused.code, refused.stdout.len()), (77, 0), "{verb}: {refused:?}");
        }
        run(&connect, ["queue", "put", "/q", "b"]).await.ok();
        client.close().await;
    }
}
