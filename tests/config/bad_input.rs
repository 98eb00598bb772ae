//! Input that breaks a rule is rejected before anything is sent.

use crate::limits::limits;
use docent::config::{Raw, SharedCount};
use docent::{Config, ConfigTree, Counter, Error, ErrorKind, SharedValue};
use docent_battery::{Backend, both_backends};
use docent_tests::{builder, connect, soon};
use std::io;
use std::sync::{Arc, Mutex};
use tracing::subscriber::NoSubscriber;
use tracing_subscriber::fmt::MakeWriter;

const PATHS: [&str; 11] =
    ["", "a", "/", "/a/", "//", "/a//b", "/./a", "/..", "/a\0", "/a\u{1f}", "/a\u{fff0}"];

/// The captured log.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl io::Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Logged {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

fn refused<T>(result: Result<T, Error>, text: &str) {
    let Err(error) = result else { panic!("{text} was accepted") };
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains(text), "the error does not contain {text}: {error}");
}

both_backends! {
    async fn bad_arguments_are_named_with_their_rule(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        for path in PATHS {
            let text = format!("{path:?}");
            refused(Config::<u32>::new(&client, path), &text);
            refused(ConfigTree::<u32>::new(&client, path), &text);
            refused(SharedValue::new(&client, path, ""), &text);
            refused(SharedCount::new(&client, path, 0), &text);
            refused(Counter::<i64>::new(&client, path), &text);
        }
        let builder = || Config::<u32>::builder(&client, "/a");
        refused(builder().history(1_001).build(), "1001");
        refused(builder().history(1_001).build_tree(), "1001");
        refused(builder().snapshot_file("/").build(), "must have a name");
        refused(builder().snapshot_file("/tmp/x").build_tree(), "no snapshot file");
        refused(builder().default_value(1).build_tree(), "no default");
        let tree = ConfigTree::<u32>::new(&client, "/a").unwrap();
        let reserved = ["_history", "b/_history", "_history/b", "_running", "b/_running"];
        for key in ["", "/", "/b", "b/", "b//c", ".", "..", "b/..", "a\0"].into_iter().chain(reserved) {
            let Err(error) = tree.key(key) else { panic!("{key:?} was accepted") };
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            let spelled = error.to_string().contains(&format!("{key:?}")) || error.to_string().contains(&format!("{:?}", format!("/a/{key}")));
            assert!(spelled, "{error}");
        }
        assert_eq!(client.children("/").await.unwrap().names, [""; 0], "nothing was stored");
    }

    async fn values_of_any_form_are_stored_as_they_are(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let raw = Config::<Vec<u8>>::builder_with(&client, "/raw", Raw).build().unwrap();
        for data in [vec![], vec![0], vec![0xff; 1_000], (0..=255).collect()] {
            soon(raw.publish(&data)).await.unwrap();
            assert_eq!(soon(raw.get()).await.unwrap().unwrap().value(), &data);
            assert_eq!(client.get("/raw").await.unwrap().data, data);
        }
        let text = Config::<String>::builder_with(&client, "/raw", Raw).build().unwrap();
        client.set("/raw", vec![b'a', 0xff], None).await.unwrap();
        assert!(soon(text.get()).await.unwrap_err().to_string().contains("not UTF-8 at byte 1"));
        // Names that resemble other nodes.
        for path in ["/history", "/config-0000000001", "/é/日本", "/ a b "] {
            let config = Config::new(&client, path).unwrap();
            soon(config.publish(&limits(1))).await.unwrap();
            soon(config.publish(&limits(2))).await.unwrap();
            assert_eq!(soon(config.history()).await.unwrap().len(), 1);
            soon(config.delete()).await.unwrap();
        }
    }

    async fn nothing_that_is_printed_repeats_a_value(backend: Backend) {
        const SECRET: &str = "planted-payload";
        let logged = Logged::default();
        // With a second subscriber in the process, tracing asks the subscribers at every call site instead of
        // caching the answer.
        let _ = tracing::subscriber::set_global_default(NoSubscriber::default());
        let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(logged.clone()).finish();
        // All tasks and hooks of this test run on this thread.
        let _logging = tracing::subscriber::set_default(subscriber);
        let folder = tempfile::tempdir().unwrap();
        let server = backend.start().await;
        let client = builder(&server, server.connect_string()).inline_hooks().connect().await.unwrap();
        let config = Config::<String>::builder(&client, "/secret").default_value(SECRET.to_owned())
            .validate(|text: &String| if text.ends_with('!') { Err(format!("{text} ends badly")) } else { Ok(()) });
        let config = config.snapshot_file(folder.path().join("snapshot"));
        let mut printed = format!("{config:?}");
        let config = config.build().unwrap();
        let mut print = |value: &dyn std::fmt::Debug| printed.push_str(&format!("{value:?}{value:#?}"));
        print(&soon(config.publish(&SECRET.to_owned())).await.unwrap());
        print(&soon(config.publish(&SECRET.to_owned())).await.unwrap());
        print(&soon(config.history()).await.unwrap());
        let error = soon(config.publish(&format!("{SECRET}!"))).await.unwrap_err();
        print(&error);
        print(&error.to_string());
        let mut subscription = soon(config.subscribe()).await.unwrap();
        client.set("/secret", format!("{{\"{SECRET}\":0}}"), None).await.unwrap();
        let change = soon(subscription.changed()).await.unwrap().unwrap();
        print(&change);
        print(&(&config, &subscription, subscription.rejection().unwrap().to_string()));
        let tree = ConfigTree::<String>::new(&client, "/").err();
        print(&tree);
        let value = SharedValue::new(&client, "/value", SECRET).unwrap();
        print(&(soon(value.get()).await.unwrap(), &value));
        let logged = String::from_utf8_lossy(&logged.0.lock().unwrap()).into_owned();
        assert!(logged.contains("rejected a configuration value"), "{logged}");
        assert!(!printed.contains(SECRET) && !logged.contains(SECRET), "{printed}{logged}");
        // A caller that requests the rejection receives its detail.
        assert!(subscription.rejection().unwrap().detail().contains("expected a string"));
    }
}
