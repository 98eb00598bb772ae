//! Description of deliveries for the batteries.

use docent::queue::AckError;
use docent::{Client, CreateMode, Delivery, ErrorKind, Fence, Queue, Released};
use docent_battery::battery::{
    Contender, ContenderSetup, Fault, Recipe, RunsAsProcess, ShutsDown, Step, unanswered,
};
use docent_battery::{FrameKind, Traced};
use docent_proto::OpCode;
use docent_tests::contenders;
use std::process::Command;
use std::time::Duration;

const QUEUE: &str = "/queue";
/// The item that all contenders want.
const ITEM: &str = "/queue/items/item-0000000000";
/// The folder of the claims.
const CLAIMS: &str = "/queue/claims";
/// Data of the item's node.
const NODE: &[u8] = b"\xd0\xce\x00\x01\x00\x00\x00\x007";

/// How a contender ends its delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Gives the item back.
    Nack,
    /// Acknowledges the item and re-creates it in the same step, so each acknowledgement produces another
    /// item with the same name.
    Ack,
}

pub(crate) struct Deliveries(pub(crate) Way);

pub(crate) struct Consumer {
    client: Client,
    queue: Queue<u64>,
    namespace: String,
    way: Way,
}

impl Recipe for Deliveries {
    type Contender = Consumer;

    async fn contender(&self, setup: &ContenderSetup) -> Consumer {
        let client = contenders::connect(setup).await;
        match client.create(ITEM, NODE, CreateMode::Persistent).await {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::NodeExists),
        }
        let queue = Queue::builder(&client, QUEUE)
            .unlimited_deliveries()
            .redelivery_delay(Duration::ZERO, Duration::ZERO)
            .build()
            .unwrap();
        Consumer { queue, client, namespace: setup.namespace.clone(), way: self.0 }
    }

    fn folder(&self) -> &str {
        CLAIMS
    }

    /// True if the contender is first in the line of waiting consumers and watches the claims.
    fn waits(&self, trace: &[Traced]) -> bool {
        let watched = |frame: &Traced| {
            frame.op == Some(OpCode::GetChildren2)
                && frame.kind == FrameKind::Reply
                && frame.path.as_ref().is_some_and(|path| path.ends_with("/claims"))
        };
        trace.iter().any(watched) && unanswered(trace) == 0
    }

    fn permits(&self, step: Step, fault: Fault, error: &ErrorKind) -> bool {
        let acknowledged = self.0 == Way::Ack && step == Step::Release;
        let unknown = acknowledged && *error == ErrorKind::OutcomeUnknown;
        unknown && matches!(fault, Fault::Expired | Fault::Lost)
            || contenders::is_documented(step, fault, error)
    }
}

impl RunsAsProcess for Deliveries {
    fn process(&self, setup: &ContenderSetup) -> Command {
        let mut command = contenders::process(env!("CARGO_BIN_EXE_consumer"), setup);
        command.arg(QUEUE);
        command
    }
}

impl Contender for Consumer {
    type Held = Delivery<u64>;
    type Error = ErrorKind;
    type Fence = Fence;

    async fn acquire(&self) -> Result<Delivery<u64>, ErrorKind> {
        let delivery = self.queue.take().await.map_err(|error| error.kind())?;
        assert_eq!(*delivery.item(), 7);
        Ok(delivery)
    }

    async fn verify(&self, held: &Delivery<u64>) -> Result<(), ErrorKind> {
        held.verify().await.map_err(|error| error.kind())
    }

    async fn release(&self, held: Delivery<u64>) -> Result<Released, ErrorKind> {
        match self.way {
            Way::Nack => held.nack_now().await.map_err(kind),
            Way::Ack => {
                let again = self.client.transaction().create(ITEM, NODE, CreateMode::Persistent);
                held.ack_with(again).await.map(|()| Released::Done).map_err(kind)
            }
        }
    }

    async fn lost(&self, held: &Delivery<u64>) {
        held.lost().await;
    }

    fn is_held(&self, held: &Delivery<u64>) -> bool {
        held.is_held()
    }

    fn fence(&self, held: &Delivery<u64>) -> Option<Fence> {
        Some(held.fence())
    }

    fn node(&self, held: &Delivery<u64>) -> String {
        format!("{}{}", self.namespace, held.path())
    }

    fn session_id(&self) -> Option<i64> {
        self.client.session_id()
    }

    async fn close(&self) {
        self.client.close().await;
    }
}

impl ShutsDown for Consumer {
    async fn revoked(&self, held: &Delivery<u64>) {
        held.revoked().await;
    }

    async fn shutdown(&self, within: Duration) -> bool {
        self.client.shutdown(within).await.is_clean()
    }
}

fn kind(error: AckError) -> ErrorKind {
    match error {
        AckError::Core(error) => error.kind(),
        AckError::Lost(lost) => ErrorKind::Lost(lost.reason),
        error => panic!("{error}"),
    }
}
