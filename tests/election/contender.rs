//! Description of elections for the batteries.

use docent::{Client, Election, Error, Fence, Leadership, Released};
use docent_battery::Traced;
use docent_battery::battery::{
    Contender, ContenderSetup, Fault, Recipe, RunsAsProcess, ShutsDown, Step, unanswered,
};
use docent_proto::OpCode;
use docent_tests::contenders;
use std::process::Command;
use std::time::Duration;

const ELECTION: &str = "/election";

pub(crate) struct Elections;

pub(crate) struct Candidate {
    client: Client,
    election: Election,
    namespace: String,
}

impl Recipe for Elections {
    type Contender = Candidate;

    async fn contender(&self, setup: &ContenderSetup) -> Candidate {
        let client = contenders::connect(setup).await;
        Candidate {
            election: Election::new(&client, ELECTION).unwrap(),
            client,
            namespace: setup.namespace.clone(),
        }
    }

    fn folder(&self) -> &str {
        ELECTION
    }

    /// Returns true if a waiter has set the watches on its predecessor and on its own node, which it does
    /// with one request.
    fn waits(&self, trace: &[Traced]) -> bool {
        trace.iter().any(|frame| frame.is_reply(OpCode::SetWatches)) && unanswered(trace) == 0
    }

    fn permits(&self, step: Step, fault: Fault, error: &Error) -> bool {
        contenders::is_documented(step, fault, &error.kind())
    }
}

impl RunsAsProcess for Elections {
    fn process(&self, setup: &ContenderSetup) -> Command {
        let mut command = contenders::process(env!("CARGO_BIN_EXE_leader"), setup);
        command.arg(ELECTION);
        command
    }
}

impl Contender for Candidate {
    type Held = Leadership;
    type Error = Error;
    type Fence = Fence;

    async fn acquire(&self) -> Result<Leadership, Error> {
        self.election.campaign().await
    }

    async fn verify(&self, held: &Leadership) -> Result<(), Error> {
        held.verify().await
    }

    async fn release(&self, held: Leadership) -> Result<Released, Error> {
        held.resign().await
    }

    async fn lost(&self, held: &Leadership) {
        held.lost().await;
    }

    fn is_held(&self, held: &Leadership) -> bool {
        held.is_held()
    }

    fn fence(&self, held: &Leadership) -> Option<Fence> {
        Some(held.fence())
    }

    fn node(&self, held: &Leadership) -> String {
        format!("{}{}", self.namespace, held.path())
    }

    fn session_id(&self) -> Option<i64> {
        self.client.session_id()
    }

    async fn close(&self) {
        self.client.close().await;
    }
}

impl ShutsDown for Candidate {
    async fn revoked(&self, held: &Leadership) {
        held.revoked().await;
    }

    async fn shutdown(&self, within: Duration) -> bool {
        self.client.shutdown(within).await.is_clean()
    }
}
