//! Invalid input causes an error that names the value and the rule, and nothing is sent.

use docent::election::ElectionLayout;
use docent::{Election, ErrorKind};
use docent_battery::{Backend, both_backends};
use docent_tests::{builder, connect, frames_since, refuses_bad_paths, short_of_a_lease, soon};
use std::time::Duration;

both_backends! {
    async fn an_election_with_bad_settings_is_refused_when_it_is_created(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let before = server.front().trace().len();
        refuses_bad_paths(|path| Election::new(&client, path));
        let both = Election::builder(&client, "/e").id("host-7").data("10.0.0.7").build().unwrap_err();
        assert!(both.to_string().contains("id \"host-7\" and data must not both be given"), "{both}");
        for layout in [ElectionLayout::LeaderLatch, ElectionLayout::LeaderSelector] {
            let empty = Election::builder(&client, "/e").layout(layout).id("").build().unwrap_err();
            assert_eq!(empty.kind(), ErrorKind::InvalidInput);
            assert!(empty.to_string().contains("id \"\" must not be empty"), "{empty}");
        }
        let marker = Election::builder(&client, "/e").neighbours("lock-0").build().unwrap_err();
        assert!(marker.to_string().contains("\"lock-0\" must not end with a digit"), "{marker}");
        let large = Election::builder(&client, "/e").data(vec![0; 1_048_575]).build().unwrap_err();
        assert_eq!((large.kind(), large.path()), (ErrorKind::TooLarge, Some("/e")));
        // A session of 8 s has a margin of 2.67 s.
        let grace = Election::builder(&client, "/e").grace(Duration::from_secs(3)).build().unwrap_err();
        assert_eq!(grace.kind(), ErrorKind::InvalidInput);
        let text = grace.to_string();
        assert!(text.contains("grace 3s must be at most 2.66") && text.contains("session timeout of 8s"), "{text}");
        let hidden = Election::builder(&client, "/e").grace(Duration::from_secs(2)).data("payload");
        let text = format!("{hidden:?} {:?}", hidden.clone().build().unwrap());
        assert!(text.contains("/e") && !text.contains("payload"), "{text}");
        assert_eq!(frames_since(&server, before), 0);
    }

    async fn a_grace_that_does_not_fit_is_refused_when_campaigning_if_the_client_connects_later(backend: Backend) {
        let server = backend.start().await;
        let client = builder(&server, server.connect_string()).build().unwrap();
        let election = Election::builder(&client, "/e").grace(Duration::from_secs(5)).build().unwrap();
        let error = soon(election.campaign()).await.unwrap_err();
        assert!(error.to_string().contains("grace 5s must be at most 2.66"), "{error}");
        crate::candidate::until_candidates(&election, 0).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_candidate_is_refused_when_the_session_timeout_is_below_four_ticks() {
    let server = Backend::Memory.start().await;
    let client = short_of_a_lease(&server).connect().await.unwrap();
    let error = soon(Election::new(&client, "/e").unwrap().campaign()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ShortLease);
    let run = Election::new(&client, "/e").unwrap().run(|_| async { Ok::<(), docent::Error>(()) });
    assert_eq!(soon(run).await.unwrap_err().kind(), ErrorKind::ShortLease);
}
