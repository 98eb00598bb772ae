//! The mutex stands the batteries of faults.

use docent::{AcquireError, Client, ErrorKind, Fence, Mutex, MutexGuard};
use docent_proto::OpCode;
use docent_testkit::battery::{self, Contender, Fault, Recipe, Seat, Step, unanswered};
use docent_testkit::{Backend, Traced, both_backends};
use docent_tests::PATIENCE;
use std::process::Command;

const LOCK: &str = "/lock";

struct Locks;

struct Locker {
    client: Client,
    mutex: Mutex,
    namespace: String,
}

impl Recipe for Locks {
    type Contender = Locker;

    async fn contender(&self, seat: &Seat) -> Locker {
        let client = Client::builder(&seat.connect_string)
            .namespace(&seat.namespace)
            .session_timeout(seat.session_timeout)
            .server_tick(seat.tick)
            .operation_timeout(PATIENCE)
            .connect()
            .await
            .unwrap();
        Locker { mutex: Mutex::new(&client, LOCK).unwrap(), client, namespace: seat.namespace.clone() }
    }

    fn folder(&self) -> &str {
        LOCK
    }

    /// A waiter watches the one ahead, and its own node.
    fn waits(&self, trace: &[Traced]) -> bool {
        trace.iter().filter(|frame| frame.is_reply(OpCode::GetData)).count() >= 2 && unanswered(trace) == 0
    }

    fn permits(&self, step: Step, fault: Fault, error: &AcquireError) -> bool {
        let AcquireError::Core(error) = error else { return false };
        match (step, fault) {
            (Step::Acquire, Fault::Closed) => error.kind() == ErrorKind::Closed,
            (Step::Verify | Step::Release, Fault::Closed) => {
                matches!(error.kind(), ErrorKind::Closed | ErrorKind::Lost(_))
            }
            (Step::Verify | Step::Release, Fault::Expired | Fault::Lost) => {
                matches!(error.kind(), ErrorKind::Lost(_))
            }
            _ => false,
        }
    }

    fn process(&self, seat: &Seat) -> Option<Command> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_holder"));
        command.args([&seat.connect_string, &seat.namespace]);
        command.args([seat.session_timeout, seat.tick].map(|time| time.as_millis().to_string()));
        command.arg(LOCK);
        Some(command)
    }
}

impl Contender for Locker {
    type Held = MutexGuard;
    type Error = AcquireError;
    type Fence = Fence;

    async fn acquire(&self) -> Result<MutexGuard, AcquireError> {
        self.mutex.acquire().await
    }

    async fn verify(&self, held: &MutexGuard) -> Result<(), AcquireError> {
        Ok(held.verify().await?)
    }

    async fn release(&self, held: MutexGuard) -> Result<(), AcquireError> {
        Ok(held.release().await?)
    }

    async fn lost(&self, held: &MutexGuard) {
        held.lost().await;
    }

    fn is_held(&self, held: &MutexGuard) -> bool {
        held.is_held()
    }

    fn fence(&self, held: &MutexGuard) -> Option<Fence> {
        Some(held.fence())
    }

    fn node(&self, held: &MutexGuard) -> String {
        format!("{}{}", self.namespace, held.path())
    }

    fn session_id(&self) -> Option<i64> {
        self.client.session_id()
    }

    async fn close(&self) {
        self.client.close().await;
    }
}

both_backends! {
    async fn a_link_that_breaks_at_any_request_never_doubles_or_drops_a_lock(backend: Backend) {
        battery::lost_reply(&Locks, &backend.start().await).await;
    }

    async fn a_future_dropped_at_any_poll_leaves_nothing_and_frees_the_place(backend: Backend) {
        battery::cancel(&Locks, &backend.start().await).await;
    }

    async fn a_client_closed_at_any_poll_ends_every_future_its_session_and_its_tasks(backend: Backend) {
        battery::close(&Locks, &backend.start().await).await;
    }

    async fn a_lost_lock_is_known_to_be_in_time_and_for_good(backend: Backend) {
        battery::loss(&Locks, &backend.start().await).await;
    }

    async fn a_black_holed_holder_knows_of_its_loss_before_the_next_grant_whenever_it_happens(backend: Backend) {
        let runs = if backend == Backend::Embedded { 100 } else { 12 };
        battery::black_holes(&Locks, &backend.start().await, runs).await;
    }
}
