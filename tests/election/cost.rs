//! Round trips of a term, with sessions that immediately send requests that are submitted together.

use docent::{CreateMode, Election};
use docent_battery::{Backend, Traced, both_backends, round_trips};
use docent_proto::OpCode;
use docent_tests::{connect, soon};

both_backends! {
    async fn an_uncontended_campaign_is_one_round_trip_and_with_the_resignation_two(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let election = Election::new(&client, "/election").unwrap();
        // The servers would delete an empty container after a while, and the client would create it again.
        client.create("/election", "", CreateMode::Persistent).await.unwrap();
        let before = server.front().trace().len();
        let leadership = soon(election.campaign()).await.unwrap();
        assert_eq!(round_trips(&awaited(&server.front().trace()[before..])), 1);
        soon(leadership.resign()).await.unwrap();
        assert_eq!(round_trips(&awaited(&server.front().trace()[before..])), 2);
    }
}

/// Removes pings and the leader's watch on its own node, because no caller waits for their replies.
fn awaited(trace: &[Traced]) -> Vec<Traced> {
    let mut awaited = trace.to_vec();
    awaited.retain(|frame| !matches!(frame.op, Some(OpCode::GetData | OpCode::Ping)));
    awaited
}
