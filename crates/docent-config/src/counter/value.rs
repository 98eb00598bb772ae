use super::Integer;
use docent_core::recipe::{VersionedNode, debug_handle};
use docent_core::{Client, Error, Node};
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;

/// A number that many count up and down, in the layout of Curator's `DistributedAtomicLong` (`Counter<i64>`)
/// and `DistributedAtomicInteger` (`Counter<i32>`): the data of a persistent node, the highest byte first.
/// Cheap to clone.
///
/// It is read, and written if nobody else was faster; else again, after a random pause. Where many count all
/// the time, [add](Self::add) a block of numbers at once and give them out in the process.
///
/// # Guarantees
/// Each change is applied once or not at all, also when replies are lost, and says between which two numbers
/// it went.
///
/// # Caveats
/// Deleting the node while others count is not safe: the servers compare its version, which begins anew.
///
/// # Examples
/// ```no_run
/// # async fn example(client: docent_core::Client) -> Result<(), docent_config::CounterError> {
/// use docent_config::Counter;
///
/// let orders = Counter::<i64>::new(&client, "/counters/orders")?;
/// let number = orders.increment().await?.after;
/// let block = orders.add(1_000).await?;
/// println!("order {number}, and {} to {} for later", block.before + 1, block.after);
/// # Ok(()) }
/// ```
pub struct Counter<N> {
    versioned: VersionedNode,
    number: PhantomData<fn() -> N>,
}

/// Between which numbers a change went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Counted<N> {
    /// The number before.
    pub before: N,
    /// The number after.
    pub after: N,
}

/// Errors of reading and changing a [`Counter`](crate::Counter).
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CounterError {
    /// The node's data is no number of this kind: it has too few bytes. Nothing was written.
    #[error("count {path:?}: it holds {found} bytes, and a number takes {wanted}")]
    Corrupted {
        /// The path, as it was given.
        path: String,
        /// Bytes that the node has.
        found: usize,
        /// Bytes that a number takes.
        wanted: usize,
    },
    /// The result would be out of range. Nothing was written.
    #[error("count {path:?}: it would leave the range of its numbers")]
    Overflow {
        /// The path, as it was given.
        path: String,
    },
    /// The servers could not be reached or refused.
    #[error(transparent)]
    Core(#[from] Error),
}

impl<N: Integer> Counter<N> {
    /// The counter at `path`. Nothing is written before it is counted; it is 0 until then.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule or is the root.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        Ok(Self { versioned: VersionedNode::new(client, path)?, number: PhantomData })
    }

    /// The path, as it was given.
    pub fn path(&self) -> &str {
        self.versioned.path()
    }

    /// The number now, at the server this client talks to; 0 when nobody has counted yet.
    ///
    /// # Errors
    /// [`CounterError::Corrupted`]; [`CounterError::Core`] with `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn get(&self) -> impl Future<Output = Result<N, CounterError>> + Send + use<N> {
        let counter = self.clone();
        async move { counter.number(counter.versioned.read().await?.as_ref()) }
    }

    /// Adds 1.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: it may have been counted.
    pub fn increment(&self) -> impl Future<Output = Result<Counted<N>, CounterError>> + Send + use<N> {
        self.add(N::ONE)
    }

    /// Subtracts 1.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: it may have been counted.
    pub fn decrement(&self) -> impl Future<Output = Result<Counted<N>, CounterError>> + Send + use<N> {
        self.subtract(N::ONE)
    }

    /// Adds `delta`.
    ///
    /// # Errors
    /// [`CounterError::Corrupted`], [`CounterError::Overflow`]; [`CounterError::Core`] with `NoAuth`,
    /// `Timeout` (also when others were faster all the time), `Closed`, and with `OutcomeUnknown` only when
    /// the session ended before it could be found out what became of it.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: it may have been counted.
    pub fn add(&self, delta: N) -> impl Future<Output = Result<Counted<N>, CounterError>> + Send + use<N> {
        let counter = self.clone();
        async move { counter.change(|before| before.plus(delta)).await }
    }

    /// Subtracts `delta`.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: it may have been counted.
    pub fn subtract(
        &self,
        delta: N,
    ) -> impl Future<Output = Result<Counted<N>, CounterError>> + Send + use<N> {
        let counter = self.clone();
        async move { counter.change(|before| before.minus(delta)).await }
    }

    /// Sets the number, also where it was corrupted: Curator's `forceSet`.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: it may have been set.
    pub fn set(&self, number: N) -> impl Future<Output = Result<(), CounterError>> + Send + use<N> {
        let counter = self.clone();
        async move { Ok(counter.versioned.set(number.encode()).await?) }
    }

    /// Sets the number if it is `expected`. False when it is another, and when nobody has counted yet.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: it may have been set.
    pub fn compare_and_set(
        &self,
        expected: N,
        number: N,
    ) -> impl Future<Output = Result<bool, CounterError>> + Send + use<N> {
        let counter = self.clone();
        async move { counter.replace(expected, number).await }
    }

    async fn replace(&self, expected: N, number: N) -> Result<bool, CounterError> {
        let mut cas = self.versioned.cas_loop();
        // A server that lags may show a number that was.
        self.versioned.client().sync(self.path()).await?;
        loop {
            let versioned = cas.versioned();
            let Some(node) = versioned.read().await? else { return Ok(false) };
            if self.number(Some(&node))? != expected {
                return Ok(false);
            }
            if versioned.write(Some(&node.stat), &number.encode(), |transaction| transaction).await?.is_some()
            {
                return Ok(true);
            }
            cas.lost().await?;
        }
    }

    /// Sets the number if nobody has counted yet. False when somebody has.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: it may have been set.
    pub fn initialize(&self, number: N) -> impl Future<Output = Result<bool, CounterError>> + Send + use<N> {
        let counter = self.clone();
        async move {
            let written = counter.versioned.write(None, &number.encode(), |transaction| transaction).await?;
            Ok(written.is_some())
        }
    }

    async fn change(&self, change: impl Fn(N) -> Option<N>) -> Result<Counted<N>, CounterError> {
        let mut cas = self.versioned.cas_loop();
        let mut caught_up = false;
        loop {
            let versioned = cas.versioned();
            let node = versioned.read().await?;
            let overflow = || CounterError::Overflow { path: self.path().to_owned() };
            let counted = |before| change(before).map(|after| (before, after)).ok_or_else(overflow);
            let (before, after) = match self.number(node.as_ref()).and_then(counted) {
                Ok(counted) => counted,
                // The server may lag behind, and show a number that was.
                Err(_) if !caught_up => {
                    versioned.client().sync(self.path()).await?;
                    caught_up = true;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let seen = node.as_ref().map(|node| &node.stat);
            if versioned.write(seen, &after.encode(), |transaction| transaction).await?.is_some() {
                return Ok(Counted { before, after });
            }
            cas.lost().await?;
        }
    }

    fn number(&self, node: Option<&Node>) -> Result<N, CounterError> {
        let Some(node) = node else { return Ok(N::ZERO) };
        let corrupted = || CounterError::Corrupted {
            path: self.path().to_owned(),
            found: node.data.len(),
            wanted: N::BYTES,
        };
        N::decode(&node.data).ok_or_else(corrupted)
    }
}

impl CounterError {
    /// True when the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Core(error) if error.is_retryable())
    }

    /// True when it may have been counted although it failed.
    pub fn may_have_applied(&self) -> bool {
        matches!(self, Self::Core(error) if error.may_have_applied())
    }

    /// The path it is about.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Corrupted { path, .. } | Self::Overflow { path } => Some(path),
            Self::Core(error) => error.path(),
        }
    }
}

impl<N> Clone for Counter<N> {
    fn clone(&self) -> Self {
        Self { versioned: self.versioned.clone(), number: PhantomData }
    }
}

impl<N> fmt::Debug for Counter<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "Counter", self.versioned.path(), self.versioned.client()).finish_non_exhaustive()
    }
}
