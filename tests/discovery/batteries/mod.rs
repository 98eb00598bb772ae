//! Kept announcements under the batteries of faults. The battery of losses is for guards and does not apply,
//! because a kept node is re-created instead.

mod memberships;
mod registrations;

use docent::{Client, Error, ErrorKind, Released};
use docent_battery::Traced;
use docent_battery::battery::{Contender, ContenderSetup, Fault, Recipe, Step, unanswered};
use docent_proto::OpCode;
use docent_tests::{contenders, own_nodes};
use std::marker::PhantomData;

/// A handle that keeps an ephemeral node with a given name.
trait Keeps: Sized {
    /// Folder of these nodes.
    const FOLDER: &str;

    /// Starts to keep a node with this name.
    async fn keep(client: &Client, name: &str) -> Result<Self, Error>;

    /// Starts to keep a node with this name in another folder.
    async fn keep_other(client: &Client, name: &str) -> Result<Self, Error>;

    /// Asks the servers whether the node exists.
    async fn verify(&self, client: &Client) -> Result<(), Error>;

    fn is_present(&self) -> bool;

    fn path(&self) -> String;

    /// Removes the node.
    async fn give_up(self) -> Result<Released, Error>;
}

/// Processes that all want the same name. Each waits for its predecessor.
struct Keeping<K>(PhantomData<K>);

struct Process<K> {
    client: Client,
    namespace: String,
    /// Ensures that the session has its witness, which is created once and is not part of the test.
    _other: K,
}

struct Kept<K> {
    handle: K,
    generation: u64,
}

impl<K: Keeps> Recipe for Keeping<K> {
    type Contender = Process<K>;

    async fn contender(&self, setup: &ContenderSetup) -> Process<K> {
        let client = contenders::connect(setup).await;
        let markers = async || own_nodes(&client).await.len();
        let before = markers().await;
        let _other = K::keep_other(&client, &format!("{:x}", client.session_id().unwrap())).await.unwrap();
        while markers().await <= before {}
        Process { client, namespace: setup.namespace.clone(), _other }
    }

    fn folder(&self) -> &str {
        K::FOLDER
    }

    /// Returns true if the contender has read its predecessor's node and watches it.
    fn waits(&self, trace: &[Traced]) -> bool {
        trace.iter().any(|frame| frame.is_reply(OpCode::GetData)) && unanswered(trace) == 0
    }

    fn permits(&self, _step: Step, fault: Fault, error: &Error) -> bool {
        fault == Fault::Closed && error.kind() == ErrorKind::Closed
    }
}

impl<K: Keeps> Contender for Process<K> {
    type Held = Kept<K>;
    type Error = Error;
    type Fence = i64;

    async fn acquire(&self) -> Result<Kept<K>, Error> {
        let handle = K::keep(&self.client, "1").await?;
        Ok(Kept { handle, generation: self.client.state().current().generation })
    }

    async fn verify(&self, held: &Kept<K>) -> Result<(), Error> {
        held.handle.verify(&self.client).await
    }

    async fn release(&self, held: Kept<K>) -> Result<Released, Error> {
        held.handle.give_up().await
    }

    /// Waits until the node is kept by another session.
    async fn lost(&self, held: &Kept<K>) {
        self.client.state().wait_for(|connection| connection.generation > held.generation).await;
    }

    fn is_held(&self, held: &Kept<K>) -> bool {
        held.handle.is_present() && self.client.state().current().generation == held.generation
    }

    fn fence(&self, _held: &Kept<K>) -> Option<i64> {
        None
    }

    fn node(&self, held: &Kept<K>) -> String {
        format!("{}{}", self.namespace, held.handle.path())
    }

    fn session_id(&self) -> Option<i64> {
        self.client.session_id()
    }

    async fn close(&self) {
        self.client.close().await;
    }
}
