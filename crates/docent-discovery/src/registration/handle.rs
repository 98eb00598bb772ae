use super::{InstanceNode, RegistrationStatus};
use crate::instance::{self, EncodedInstance, Instance};
use crate::layout::{Placement, ServiceSide};
use crate::telemetry::Announced;
use bytes::Bytes;
use docent_core::recipe::in_time;
use docent_core::{Client, ConnectionState, Error, ErrorKind};
use futures_util::future::join_all;
use serde::Serialize;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes of a request besides an instance's path and data.
const FIELDS: usize = 1024;

/// An instance that is kept announced until this is dropped. Made by
/// [`Registry::register`](crate::Registry::register).
///
/// # Guarantees
/// - A dynamic instance is announced again in each new session of the client, with its newest data, and when
///   somebody deletes its node. Only a node of the same id is ever touched, and another session's node is
///   waited for.
/// - When [`deregister`](Self::deregister) returned, it is not announced again.
///
/// # What happens
/// - *Link down:* its node stays for the session timeout.
/// - *Session over:* it is announced again in the next one, within a second or so of that. When the client
///   itself gave the old session up, its node is replaced in one step: nobody sees it gone.
/// - *Client closed:* a dynamic instance goes with the session.
/// - *Client [shut down](Client::shutdown):* a dynamic instance is deregistered, with a
///   [drain](crate::RegistryBuilder::drain) period after it stood disabled for that.
///
/// # On drop
/// A dynamic instance is deregistered in the background. A static or permanent one stays, and where an update
/// in Dubbo's layout failed perhaps also the node it would have replaced: a later [`update`](Self::update),
/// [`announced`](Self::announced) or [`deregister`](Self::deregister) of this handle deletes it.
#[must_use = "a dynamic instance is deregistered when this is dropped"]
pub struct Registration {
    pub(super) client: Client,
    pub(super) placement: Placement,
    pub(super) service: String,
    pub(super) side: ServiceSide,
    /// Time for which the client's shutdown lets it stand disabled.
    pub(super) drain: Duration,
    state: Mutex<Announcement>,
    _announced: Announced,
}

pub(super) struct Announcement {
    pub(super) encoded: EncodedInstance,
    pub(super) node: Arc<InstanceNode>,
    /// Nodes at other paths that it replaces, the last one last.
    pub(super) replaced: Vec<Arc<InstanceNode>>,
    /// Number of callers that wait for an update.
    pub(super) waiting: usize,
}

impl Registration {
    /// Begins to announce, without waiting.
    pub(crate) fn start(
        client: &Client,
        placement: &Placement,
        service: &str,
        side: ServiceSide,
        encoded: EncodedInstance,
        drain: Duration,
    ) -> Result<Self, Error> {
        let (path, data) = checked(client, placement, service, side, &encoded)?;
        tracing::info!(client = client.label(), service, id = encoded.id, path, "registering");
        InstanceNode::keep_on(client, &path, data)
            .map(|node| Self::new(client, placement, service, side, encoded, node, drain))
    }

    /// Announces, and waits until the servers have it.
    pub(crate) async fn make(
        client: &Client,
        placement: &Placement,
        service: &str,
        side: ServiceSide,
        encoded: EncodedInstance,
        drain: Duration,
    ) -> Result<Self, Error> {
        let (path, data) = checked(client, placement, service, side, &encoded)?;
        tracing::info!(client = client.label(), service, id = encoded.id, path, "registering");
        let node = if encoded.service_type.is_dynamic() {
            InstanceNode::keep_anew(client, &path, data).await?
        } else {
            InstanceNode::persistent(client, path, data)
        };
        node.written().await?;
        Ok(Self::new(client, placement, service, side, encoded, node, drain))
    }

    fn new(
        client: &Client,
        placement: &Placement,
        service: &str,
        side: ServiceSide,
        encoded: EncodedInstance,
        node: InstanceNode,
        drain: Duration,
    ) -> Self {
        let state =
            Mutex::new(Announcement { encoded, node: Arc::new(node), replaced: Vec::new(), waiting: 0 });
        let registration = Self {
            client: client.clone(),
            placement: placement.clone(),
            service: service.to_owned(),
            side,
            drain,
            state,
            _announced: Announced::new(client, service),
        };
        registration.set_farewell(&registration.state());
        registration
    }

    pub(super) fn state(&self) -> MutexGuard<'_, Announcement> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id of the instance.
    pub fn id(&self) -> String {
        self.state().encoded.id.clone()
    }

    /// The path of its node.
    pub fn path(&self) -> String {
        self.state().node.path().to_owned()
    }

    /// State of the registration, as far as it is known: no I/O.
    pub fn status(&self) -> RegistrationStatus {
        match self.state().node.status() {
            RegistrationStatus::Removed => RegistrationStatus::Removed,
            _ if self.client.state().current() == ConnectionState::Closed => RegistrationStatus::Closed,
            status => status,
        }
    }

    /// Waits until it stands otherwise than this saw last; `None` once the client is closed. A static or
    /// permanent instance does not change until then, as nobody looks after it.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn changed(&mut self) -> Option<RegistrationStatus> {
        let mut connection = self.client.state();
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        // An update that was dropped has let go of the node.
        let node = Arc::get_mut(&mut state.node)?;
        let closed = connection.wait_for(|connection| connection.state == ConnectionState::Closed);
        tokio::select! {
            biased;
            status = node.changed() => status.filter(|status| !matches!(status, RegistrationStatus::Closed)),
            _ = closed => None,
        }
    }

    /// Error for which it cannot be announced at present, when there is one that does not pass by itself:
    /// `Closed` once the client is closed.
    pub fn last_error(&self) -> Option<Error> {
        match self.status() {
            RegistrationStatus::Failing(error) => Some(error),
            RegistrationStatus::Closed => Some(Error::closed("register", &self.path())),
            _ => None,
        }
    }

    /// Waits until the servers have the newest instance, at most for the operation timeout, but for a
    /// predecessor's node until its session must have ended. An update made while this waits is waited for in
    /// the same way.
    ///
    /// # Errors
    /// Why it cannot be announced; `NodeExists` when a node of another session stays in its place; `Timeout`,
    /// `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn announced(&self) -> Result<(), Error> {
        self.settle().await
    }

    /// Says something else about the instance from now on, and waits until the servers have it, as
    /// [`announced`](Self::announced).
    ///
    /// Of several at the same time the last one counts, and each returns when the servers have that.
    ///
    /// In Dubbo's layout the data is the node's name: the old node stays until the new one is there, or until
    /// nobody waits for an update any more. A node whose data is set again before it went stays, unless its
    /// deletion is already on its way; then it is made anew.
    ///
    /// # Errors
    /// `InvalidInput` when it is another instance or breaks a rule, `TooLarge`: then nothing changes. Else
    /// as [`announced`](Self::announced), and a dynamic instance is brought there in the background all the
    /// same.
    ///
    /// # Cancel safety
    /// This method is cancel safe for a dynamic instance: the update goes on. For others it is *not* cancel
    /// safe: the update may have been applied.
    pub async fn update<P: Serialize>(&self, instance: Instance<P>) -> Result<(), Error> {
        instance.check()?;
        let next = instance::encoded(&self.client, instance)?;
        self.put(move |now| {
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
        })
        .await
    }

    /// Says whether it may be given work: an instance that is not enabled is announced, and not picked by
    /// anybody. As [`update`](Self::update).
    ///
    /// # Errors
    /// As [`announced`](Self::announced).
    ///
    /// # Cancel safety
    /// As [`update`](Self::update).
    pub async fn set_enabled(&self, enabled: bool) -> Result<(), Error> {
        self.put(move |now| Ok(now.clone().enabled(enabled))).await
    }

    /// Takes the instance out of use in an orderly way: it is not enabled any more, so that nobody picks it,
    /// and deregistered once `period` is over, which should be longer than the work takes that is under way
    /// with it.
    ///
    /// The period is not waited for where the servers did not acknowledge within the operation timeout that
    /// it is disabled: nobody can have heard of it then. So in an outage it takes the operation timeout, and
    /// no longer. [`Client::shutdown`] does this for all registrations, within its own time.
    ///
    /// # Errors
    /// As [`deregister`](Self::deregister).
    ///
    /// # Cancel safety
    /// This method is cancel safe: a dynamic instance is deregistered at once then.
    pub async fn drain(self, period: Duration) -> Result<(), Error> {
        tracing::info!(
            client = self.client.label(),
            service = self.service,
            id = self.id(),
            ?period,
            "draining"
        );
        let disabled = in_time(&self.client, "drain", &self.path(), self.set_enabled(false)).await;
        match disabled {
            Ok(()) => tokio::time::sleep(period).await,
            Err(error) => {
                tracing::warn!(client = self.client.label(), service = self.service, id = self.id(), %error, "an instance could not be disabled, and leaves at once");
                if error.kind() == ErrorKind::Timeout && self.state().encoded.service_type.is_dynamic() {
                    // The servers are away: the drop deregisters it in the background.
                    return Err(error);
                }
            }
        }
        self.deregister().await
    }

    /// Deregisters the instance, and waits until its node is gone, at most for the operation timeout.
    ///
    /// # Errors
    /// `Timeout` when no server could be reached in time, `Closed`: a dynamic instance is removed in the
    /// background, or goes with its session.
    ///
    /// # Cancel safety
    /// This method is cancel safe for a dynamic instance: it is deregistered all the same. For others it is
    /// *not* cancel safe: it may have been deregistered.
    pub async fn deregister(self) -> Result<(), Error> {
        tracing::info!(client = self.client.label(), service = self.service, id = self.id(), "deregistering");
        let Announcement { node, replaced, .. } =
            self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        node.release();
        // Each removal is tried, also when others fail.
        let removed = join_all(replaced.iter().chain([&node]).map(|node| node.remove())).await;
        removed.into_iter().collect()
    }
}

/// The path and data of an instance's node, if they fit into a request.
pub(super) fn checked(
    client: &Client,
    placement: &Placement,
    service: &str,
    side: ServiceSide,
    encoded: &EncodedInstance,
) -> Result<(String, Bytes), Error> {
    let (path, data) = placement.node(service, side, encoded)?;
    let most = client.max_request();
    let size = path.len() + data.len() + FIELDS;
    if size > most {
        return Err(Error::too_large("register", size, most).at(&path));
    }
    Ok((path, data))
}

// The announced data is not printed.
impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Registration")
            .field("path", &state.node.path())
            .field("status", &state.node.status())
            .finish_non_exhaustive()
    }
}
