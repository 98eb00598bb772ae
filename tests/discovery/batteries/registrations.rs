//! Registrations.

use super::{Keeping, Keeps};
use crate::scene::{ORDERS, orders, registry};
use docent::discovery::{Registration, RegistrationStatus};
use docent::{Client, Error, Released};
use docent_battery::{Backend, battery, both_backends};
use std::marker::PhantomData;

const REGISTRATIONS: Keeping<Registration> = Keeping(PhantomData);

impl Keeps for Registration {
    const FOLDER: &str = ORDERS;

    async fn keep(client: &Client, name: &str) -> Result<Self, Error> {
        registry(client).register(orders(name)).await
    }

    async fn keep_other(client: &Client, name: &str) -> Result<Self, Error> {
        let mut other = orders(name);
        other.name = "other".to_owned();
        registry(client).register(other).await
    }

    async fn verify(&self, _client: &Client) -> Result<(), Error> {
        self.announced().await
    }

    fn is_present(&self) -> bool {
        matches!(self.status(), RegistrationStatus::Announced)
    }

    fn path(&self) -> String {
        self.path()
    }

    async fn give_up(self) -> Result<Released, Error> {
        self.deregister().await
    }
}

both_backends! {
    async fn a_link_that_breaks_at_any_request_never_doubles_or_drops_a_registration(backend: Backend) {
        battery::lost_reply(&REGISTRATIONS, &backend.start().await).await;
    }

    async fn a_future_dropped_at_any_poll_leaves_nothing_registered(backend: Backend) {
        battery::cancel(&REGISTRATIONS, &backend.start().await).await;
    }

    async fn a_client_closed_at_any_poll_ends_every_future_its_session_and_its_tasks(backend: Backend) {
        battery::close(&REGISTRATIONS, &backend.start().await).await;
    }
}
