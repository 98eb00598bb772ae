//! Members of a group.

use super::{Keeping, Keeps};
use crate::membership::{GROUP, group};
use docent::discovery::Member;
use docent::{Client, Error, Membership, Released};
use docent_battery::{Backend, battery, both_backends};
use futures_util::StreamExt;
use std::marker::PhantomData;

const MEMBERSHIPS: Keeping<Member> = Keeping(PhantomData);

impl Keeps for Member {
    const FOLDER: &str = GROUP;

    async fn keep(client: &Client, name: &str) -> Result<Self, Error> {
        group(client).join(name, "data").await
    }

    async fn keep_other(client: &Client, name: &str) -> Result<Self, Error> {
        Membership::new(client, "/other")?.join(name, "").await
    }

    /// Waits until another client's list shows the member.
    async fn verify(&self, client: &Client) -> Result<(), Error> {
        let members = group(client).members().await?;
        let mut changes = members.changes();
        while members.get(self.id()).is_none() {
            if changes.next().await.is_none() {
                return group(client).members().await.map(drop);
            }
        }
        Ok(())
    }

    fn is_present(&self) -> bool {
        self.is_present()
    }

    fn path(&self) -> String {
        self.path().to_owned()
    }

    async fn give_up(self) -> Result<Released, Error> {
        self.leave().await
    }
}

both_backends! {
    async fn a_link_that_breaks_at_any_request_never_doubles_or_drops_a_membership(backend: Backend) {
        battery::lost_reply(&MEMBERSHIPS, &backend.start().await).await;
    }

    async fn a_future_dropped_at_any_poll_leaves_no_member(backend: Backend) {
        battery::cancel(&MEMBERSHIPS, &backend.start().await).await;
    }

    async fn a_client_closed_at_any_poll_ends_every_future_its_session_and_its_tasks(backend: Backend) {
        battery::close(&MEMBERSHIPS, &backend.start().await).await;
    }
}
