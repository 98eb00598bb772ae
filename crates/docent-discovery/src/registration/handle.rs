use super::{Announcer, InstanceNode, RegistrationStatus};
use crate::instance::{self, EncodedInstance, Instance};
use crate::telemetry::Announced;
use docent_core::recipe::{InOperation, in_time};
use docent_core::{ConnectionState, Error, ErrorKind, Released};
use futures_util::future::join_all;
use serde::Serialize;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// An instance that is kept announced until this value is dropped. Created by
/// [`Registry::register`](crate::Registry::register).
///
/// # Guarantees
/// - A dynamic instance is announced again with its latest data in each new session of the client, and if
///   another client deletes its node. The client touches no node with another id. If another session owns the
///   node with this id, the client waits until that node is deleted.
/// - After [`deregister`](Self::deregister) has returned, the instance is not announced again.
/// - Data that another client writes into the node of a dynamic instance is replaced by the instance's own,
///   but [its `enabled` is followed](Self::is_disabled_by_operator).
///
/// # What happens
/// - *Connection lost:* the node stays for the session timeout.
/// - *Session expired:* the instance is announced again in the next session, within about a second. If the
///   client itself gave up the old session, the node is replaced in one step, so no client sees it deleted.
/// - *Client closed:* a dynamic instance is deleted with the session.
/// - *Client [shut down](docent_core::Client::shutdown):* a dynamic instance is deregistered. With a
///   [drain](crate::RegistryBuilder::drain) period, it is disabled for that period first.
///
/// # On drop
/// A dynamic instance is deregistered in the background. A static or permanent one stays. If an update in
/// Dubbo's layout failed, the node to be replaced may stay as well: a later [`update`](Self::update),
/// [`announced`](Self::announced) or [`deregister`](Self::deregister) of this handle deletes it.
#[must_use = "dropping the registration deregisters a dynamic instance"]
pub struct Registration {
    state: Mutex<Announcement>,
    /// Ends after the nodes, which need its preparation.
    pub(super) announcer: Announcer,
    _announced: Announced,
}

pub(super) struct Announcement {
    pub(super) encoded: EncodedInstance,
    pub(super) node: Arc<InstanceNode>,
    /// Nodes at other paths that it replaces, in the order of replacement.
    pub(super) replaced: Vec<Arc<InstanceNode>>,
    /// Number of callers that wait for an update.
    pub(super) waiting: usize,
    /// Number of changes so far.
    pub(super) number: u64,
}

impl Registration {
    /// Starts announcing, without waiting.
    pub(crate) fn start(announcer: Announcer, encoded: EncodedInstance) -> Result<Self, Error> {
        let (path, data) = announcer.first_node(&encoded)?;
        let node = InstanceNode::keep_on(&announcer, &path, data)?;
        Ok(Self::new(announcer, encoded, node))
    }

    /// Announces, waiting until the servers have the instance.
    pub(crate) async fn make(announcer: Announcer, encoded: EncodedInstance) -> Result<Self, Error> {
        let (path, data) = announcer.first_node(&encoded)?;
        let node = if encoded.service_type.is_dynamic() {
            InstanceNode::keep_when_vacant(&announcer, &path, data).await?
        } else {
            InstanceNode::persistent(&announcer, path, data)
        };
        let registration = Self::new(announcer, encoded, node);
        let node = Arc::clone(&registration.state().node);
        node.written().await?;
        Ok(registration)
    }

    fn new(announcer: Announcer, encoded: EncodedInstance, node: InstanceNode) -> Self {
        let state = Mutex::new(Announcement {
            encoded,
            node: Arc::new(node),
            replaced: Vec::new(),
            waiting: 0,
            number: 0,
        });
        let announced = Announced::new(&announcer.client, &announcer.service);
        let registration = Self { state, announcer, _announced: announced };
        registration.set_final_data(&registration.state());
        registration
    }

    pub(super) fn state(&self) -> MutexGuard<'_, Announcement> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the id of the instance.
    pub fn id(&self) -> String {
        self.state().encoded.id.clone()
    }

    /// Returns the path of its node.
    pub fn path(&self) -> String {
        self.state().node.path().to_owned()
    }

    /// Returns the last known state of the registration, without I/O.
    pub fn status(&self) -> RegistrationStatus {
        match self.state().node.status() {
            RegistrationStatus::Removed => RegistrationStatus::Removed,
            _ if self.announcer.client.state().current() == ConnectionState::Closed => {
                RegistrationStatus::Closed
            }
            status => status,
        }
    }

    /// Returns true while an operator has the instance disabled: another client, such as the console, has
    /// written its node with `enabled` set to false. Callers then do not pick the instance, which stays
    /// announced. This lasts until an operator enables the instance again, or until this value is dropped;
    /// [`set_enabled`](Self::set_enabled) and [`update`](Self::update) do not change it. Always false for a
    /// static or permanent instance, and in Dubbo's layout.
    pub fn is_disabled_by_operator(&self) -> bool {
        self.state().node.is_disabled_by_others()
    }

    /// Waits for a state other than the last one returned. Returns `None` once the client is closed. A static
    /// or permanent instance does not change until then, because nothing watches its node.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn changed(&mut self) -> Option<RegistrationStatus> {
        let mut connection = self.announcer.client.state();
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        // A dropped update no longer shares the node.
        let node = Arc::get_mut(&mut state.node)?;
        let closed = connection.wait_for(|connection| connection.state == ConnectionState::Closed);
        tokio::select! {
            biased;
            status = node.changed() => status.filter(|status| !matches!(status, RegistrationStatus::Closed)),
            _ = closed => None,
        }
    }

    /// Returns the error that currently prevents the announcement, if the error is not temporary; `Closed`
    /// once the client is closed.
    pub fn last_error(&self) -> Option<Error> {
        match self.status() {
            RegistrationStatus::Failing(error) => Some(error),
            RegistrationStatus::Closed => Some(Error::closed("register", &self.path())),
            _ => None,
        }
    }

    /// Waits until the servers have the latest instance, for at most the operation timeout. If a
    /// predecessor's node exists, waits until its session must have ended. If the instance is updated
    /// meanwhile, also waits for that update.
    ///
    /// # Errors
    /// Why the instance cannot be announced; `NodeExists` if a node of another session stays in its place;
    /// `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn announced(&self) -> Result<(), Error> {
        self.settle().await.in_operation("announced")
    }

    /// Changes the announced instance, and waits until the servers have it, like
    /// [`announced`](Self::announced).
    ///
    /// Of concurrent updates the last one applies, and each call returns when the servers have that one.
    ///
    /// In Dubbo's layout the node's name holds the data: the old node stays until the new one exists, or
    /// until no caller waits for an update any more. If an update returns to the data of an old node that was
    /// not deleted yet, that node is used again; if its deletion has already been sent, it is re-created.
    ///
    /// # Errors
    /// `InvalidInput` if it is another instance or breaks a rule, also that of a neighbour's payloads, and
    /// `TooLarge`: in these cases nothing changes. Otherwise the same as [`announced`](Self::announced), and
    /// a dynamic instance is still updated in the background.
    ///
    /// # Cancel safety
    /// This method is cancel safe for a dynamic instance: the update continues. For others it is *not* cancel
    /// safe: the update may have been applied.
    pub async fn update<P: Serialize>(&self, instance: Instance<P>) -> Result<(), Error> {
        instance.check().in_operation("update")?;
        let next = instance::encoded(&self.announcer.client, instance).in_operation("update")?;
        let updated = self.put(move |now| {
            let same = (&now.name, &now.id) == (&next.name, &next.id)
                && now.service_type.is_dynamic() == next.service_type.is_dynamic();
            if same {
                return Ok(next);
            }
            let detail = format!(
                "instance {:?} of {:?} must keep its name, its id and whether it is dynamic, and not become {:?} of {:?}",
                now.id, now.name, next.id, next.name
            );
            Err(Error::invalid_input("update", detail))
        });
        updated.await.in_operation("update")
    }

    /// Sets whether the instance may be given work: a disabled instance is announced but not picked. Works
    /// like [`update`](Self::update). An instance that [an operator has
    /// disabled](Self::is_disabled_by_operator) is not picked in any case.
    ///
    /// # Errors
    /// Same as [`announced`](Self::announced).
    ///
    /// # Cancel safety
    /// Same as [`update`](Self::update).
    pub async fn set_enabled(&self, enabled: bool) -> Result<(), Error> {
        self.put(move |now| Ok(now.clone().enabled(enabled))).await.in_operation("set_enabled")
    }

    /// Takes the instance out of service gracefully: disables it, so that it is not picked any more, and
    /// deregisters it after `period`. The period should be longer than the work that is in progress takes.
    ///
    /// The wait is skipped if the servers did not acknowledge within the operation timeout that the instance
    /// is disabled, because then no client can have learned of it. So for a dynamic instance this takes at
    /// most `period` and two operation timeouts, and during an outage only one operation timeout.
    /// [`Client::shutdown`](docent_core::Client::shutdown) drains all registrations, within its own time
    /// limit.
    ///
    /// Returns [`Released::Pending`] as [`deregister`](Self::deregister) does.
    ///
    /// # Errors
    /// Same as [`deregister`](Self::deregister).
    ///
    /// # Cancel safety
    /// This method is cancel safe. A dynamic instance is then deregistered immediately.
    pub async fn drain(self, period: Duration) -> Result<Released, Error> {
        // Event: An instance is being taken out of service: it is disabled first, and deregistered after the
        // drain period.
        tracing::info!(
            target: "docent::discovery",
            client = %self.announcer.client.label(),
            service = self.announcer.service,
            id = self.id(),
            period_seconds = period.as_secs_f64(),
            "draining an instance"
        );
        let disabled = in_time(&self.announcer.client, "drain", &self.path(), self.set_enabled(false)).await;
        match disabled {
            Ok(()) => tokio::time::sleep(period).await,
            Err(error) => {
                // Event: The servers did not acknowledge that a draining instance is disabled, so it is
                // deregistered without the drain period. Callers may still send requests to it for a moment.
                // Action: Check the connection to the servers, and that the client may write the instance's
                // node.
                tracing::warn!(target: "docent::discovery", client = %self.announcer.client.label(), service = self.announcer.service, id = self.id(), %error, "failed to disable the instance; deregistering it immediately");
                if error.kind() == ErrorKind::Timeout && self.state().encoded.service_type.is_dynamic() {
                    // The servers are unreachable: the drop deregisters the instance in the background.
                    return Ok(Released::Pending);
                }
            }
        }
        self.deregister().await.in_operation("drain")
    }

    /// Deregisters the instance, waiting until its node is deleted, for at most the operation timeout.
    /// Returns [`Released::Pending`] if that takes longer: a dynamic instance is removed in the background,
    /// or with its session.
    ///
    /// # Errors
    /// `Closed`: a dynamic instance is removed with its session. `Timeout` if a static or permanent instance
    /// could not be removed in time: it remains, because it depends on no session.
    ///
    /// # Cancel safety
    /// This method is cancel safe for a dynamic instance: it is still deregistered. For others it is *not*
    /// cancel safe: the instance may have been deregistered.
    pub async fn deregister(self) -> Result<Released, Error> {
        // Event: An instance is being deregistered.
        tracing::info!(
            target: "docent::discovery",
            client = %self.announcer.client.label(),
            service = self.announcer.service,
            id = self.id(),
            "deregistering an instance"
        );
        let Announcement { node, replaced, .. } =
            self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        node.release();
        // Attempt each removal, even if others fail.
        let removed = join_all(replaced.iter().chain([&node]).map(|node| node.deregister())).await;
        removed.into_iter().collect::<Result<Released, _>>().in_operation("deregister")
    }
}

// `Debug` does not print the announced data.
impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Registration")
            .field("path", &state.node.path())
            .field("status", &state.node.status())
            .finish_non_exhaustive()
    }
}
