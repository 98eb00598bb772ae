//! Bad input is an error that names value and rule, and nothing is sent.

use docent::Mutex;
use docent_battery::{Backend, both_backends};
use docent_tests::{connect, frames_since, refuses_bad_paths, short_of_a_lease, soon};
use std::time::Duration;

both_backends! {
    async fn a_lock_at_an_invalid_path_is_refused_when_it_is_created(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let before = server.front().trace().len();
        refuses_bad_paths(|path| Mutex::new(&client, path));
        for (marker, rule) in [("", "must not be empty"), ("a/b", "must not contain '/'"), ("lock-", "the lock's own marker")] {
            let error = Mutex::builder(&client, "/lock").neighbours(marker).build().unwrap_err();
            let text = error.to_string();
            assert!(text.contains(rule) && text.contains(&format!("{marker:?}")), "{text}");
        }
        assert_eq!(frames_since(&server, before), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lock_is_refused_when_the_session_timeout_is_below_four_ticks() {
    let server = Backend::Memory.start().await;
    let short = short_of_a_lease(&server);
    let client = short.clone().connect().await.unwrap();
    let error = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("2s") && text.contains("four server ticks of 1s"), "{text}");
    crate::order::until_waiting(&Mutex::new(&client, "/lock").unwrap(), 0).await;

    let no_lease = short.clone().server_tick(Duration::from_secs(2)).accept_short_lease();
    let client = no_lease.connect().await.unwrap();
    let error = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap_err();
    assert!(error.to_string().contains("longer than its margin"), "{error}");

    let client = short.accept_short_lease().connect().await.unwrap();
    let _ = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
}
