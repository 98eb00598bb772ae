use docent_core::recipe::curator::decode_count;
use docent_core::recipe::{InOperation, VersionedNode, debug_handle};
use docent_core::{Client, Error, Node};
use futures_util::stream::{self, BoxStream, StreamExt};
use std::fmt;
use std::future::Future;

/// The number of permits of [`Semaphore`](crate::Semaphore)s, stored in a node. It can be raised and lowered
/// while the semaphores are in use.
///
/// The node's data is a 32-bit number in the format of Curator's `SharedCount`, so a `SharedCount` can set
/// the limit. While the node does not exist, the limit is the default that was passed to [`new`](Self::new).
/// Negative numbers count as 0.
#[derive(Clone)]
pub struct SharedLimit {
    versioned: VersionedNode,
    default: u32,
}

impl SharedLimit {
    /// Creates a handle for the limit at `path`, which is `default` until it is set.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule, or if the number is above 2^31 − 1.
    pub fn new(client: &Client, path: &str, default: u32) -> Result<Self, Error> {
        encode(default)?;
        Ok(Self { versioned: VersionedNode::new(client, path).in_operation("limit")?, default })
    }

    /// Returns the path that was passed to the constructor.
    pub fn path(&self) -> &str {
        self.versioned.path()
    }

    /// Returns the current limit, as seen by the server to which this client is connected.
    ///
    /// # Errors
    /// `InvalidInput` if the node's data is not a number; `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn get(&self) -> impl Future<Output = Result<u32, Error>> + Send + use<> {
        let limit = self.clone();
        async move { limit.decode(limit.versioned.read().await?.as_ref()) }
    }

    /// Sets the limit. If the limit is raised, waiters get the additional permits. If it is lowered, held
    /// permits stay valid until they are released. A waiter that wants more permits than a lowered limit
    /// allows [fails](crate::Semaphore::acquire_many) when its turn comes, unless the limit is 0.
    ///
    /// # Errors
    /// `InvalidInput` if the number is above 2^31 − 1; `NoAuth`, `Timeout`, `Closed`; `OutcomeUnknown` if the
    /// reply was lost and the client could not find out whether the limit was set.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the limit may have been set.
    pub fn set(&self, permits: u32) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let versioned = self.versioned.clone();
        async move { versioned.set(encode(permits)?.to_vec()).await.in_operation("set") }
    }

    /// Returns a stream of the current limit and each later one. Ends when the client is closed.
    fn changes(&self) -> Result<BoxStream<'static, Result<u32, Error>>, Error> {
        let limit = self.clone();
        let nodes = self.versioned.client().watch_data(self.path())?;
        Ok(nodes.map(move |node| limit.decode(node?.as_ref())).boxed())
    }

    fn decode(&self, node: Option<&Node>) -> Result<u32, Error> {
        let Some(node) = node else { return Ok(self.default) };
        let Some(number) = decode_count(&node.data) else {
            let detail =
                format!("{} bytes at {:?} must begin with a number of 4 bytes", node.data.len(), self.path());
            return Err(Error::invalid_input("limit", detail));
        };
        Ok(u32::try_from(number).unwrap_or(0))
    }
}

fn encode(permits: u32) -> Result<[u8; 4], Error> {
    let number = i32::try_from(permits).map_err(|_| {
        Error::invalid_input("limit", format!("permits {permits} must be at most 2147483647"))
    })?;
    Ok(number.to_be_bytes())
}

/// Source of a semaphore's number of permits.
#[derive(Debug, Clone)]
pub(crate) enum Limit {
    Fixed(u32),
    Shared(SharedLimit),
}

impl Limit {
    /// Returns an error if `permits` exceeds the limit `now`, unless the limit is 0: then all callers wait.
    pub(crate) fn check(&self, permits: u32, now: u32) -> Result<(), Error> {
        if permits <= now || now == 0 {
            return Ok(());
        }
        let kept = match self {
            Self::Fixed(_) => String::new(),
            Self::Shared(limit) => format!(", the limit at {:?}", limit.path()),
        };
        let detail = format!("permits {permits} must be at most the semaphore's {now}{kept}");
        Err(Error::invalid_input("acquire", detail))
    }

    /// Waits until the limit is not 0, and returns an error if `permits` exceeds it, before that many tickets
    /// are created. A request for one permit may wait in the line instead.
    pub(crate) async fn admits(&self, permits: u32) -> Result<(), Error> {
        let Self::Shared(limit) = self else { return self.check(permits, self.get().await?) };
        if permits == 1 {
            return Ok(());
        }
        let mut limits = limit.changes()?;
        while let Some(now) = limits.next().await.transpose()? {
            self.check(permits, now)?;
            if now > 0 {
                return Ok(());
            }
        }
        Err(Error::closed("acquire", limit.path()))
    }

    pub(crate) async fn get(&self) -> Result<u32, Error> {
        match self {
            Self::Fixed(permits) => Ok(*permits),
            Self::Shared(limit) => limit.get().await,
        }
    }

    pub(crate) fn changes(&self) -> Result<BoxStream<'static, Result<u32, Error>>, Error> {
        match self {
            Self::Fixed(permits) => {
                let once = stream::once(std::future::ready(Ok(*permits)));
                Ok(once.chain(stream::pending()).boxed())
            }
            Self::Shared(limit) => limit.changes(),
        }
    }
}

impl fmt::Debug for SharedLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "SharedLimit", self.path(), self.versioned.client())
            .field("default", &self.default)
            .finish_non_exhaustive()
    }
}
