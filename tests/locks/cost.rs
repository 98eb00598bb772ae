//! What locks cost in round trips, with sessions that send at once what is submitted together.

use docent::{CreateMode, Mutex};
use docent_proto::OpCode;
use docent_testkit::{Backend, Traced, both_backends, round_trips};
use docent_tests::{connect, soon};

both_backends! {
    async fn an_uncontended_acquire_is_one_round_trip_and_with_the_release_two(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutex = Mutex::new(&client, "/lock").unwrap();
        // A container would be deleted when it was empty for long, and made again.
        client.create("/lock", "", CreateMode::Persistent).await.unwrap();
        let before = server.front().trace().len();
        let guard = soon(mutex.acquire()).await.unwrap();
        assert_eq!(round_trips(&awaited(&server.front().trace()[before..])), 1);
        soon(guard.release()).await.unwrap();
        assert_eq!(round_trips(&awaited(&server.front().trace()[before..])), 2);
    }

    async fn an_acquire_without_a_parent_is_at_most_three_round_trips(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let before = server.front().trace().len();
        let _guard = soon(Mutex::new(&client, "/deep/below/lock").unwrap().acquire()).await.unwrap();
        assert!(round_trips(&awaited(&server.front().trace()[before..])) <= 3);
    }
}

/// Without pings and the watch that a holder keeps on its own node: nobody waits for their replies.
fn awaited(trace: &[Traced]) -> Vec<Traced> {
    let mut awaited = trace.to_vec();
    awaited.retain(|frame| !matches!(frame.op, Some(OpCode::GetData | OpCode::Ping)));
    awaited
}
