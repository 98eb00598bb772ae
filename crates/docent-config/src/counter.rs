use bytes::Bytes;
use docent_core::recipe::{InOperation, VersionedNode, debug_handle};
use docent_core::{Client, Error, ErrorKind, Node};
use futures_util::FutureExt;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;

/// A number that many processes count up and down, in the layout of Curator's `DistributedAtomicLong`
/// (`Counter<i64>`) and `DistributedAtomicInteger` (`Counter<i32>`): the data of a persistent node, highest
/// byte first. Cheap to clone.
///
/// Each change reads the number and writes the new one. If another client writes in between, the change is
/// retried after a random pause. If many clients count all the time, [add](Self::add) a block of numbers in
/// one step and assign them within the process.
///
/// # Guarantees
/// Each change is applied at most once, even if replies are lost, and returns the numbers before and after
/// it.
///
/// # Caveats
/// Deleting the node while clients count is not safe: the servers compare its version, which starts again at
/// 0.
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

/// Numbers before and after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Counted<N> {
    /// Number before the change.
    pub before: N,
    /// Number after the change.
    pub after: N,
}

/// Error of reading or changing a [`Counter`](crate::Counter).
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CounterError {
    /// The node's data is not a number of this type: it has too few bytes. Nothing was written.
    #[error("count {path:?}: the node holds {found} bytes, but a number takes {wanted}")]
    Corrupted {
        /// Path as given.
        path: String,
        /// Number of bytes in the node.
        found: usize,
        /// Number of bytes that a number takes.
        wanted: usize,
    },
    /// The result would be out of range. Nothing was written.
    #[error("count {path:?}: the result would be out of range")]
    Overflow {
        /// Path as given.
        path: String,
    },
    /// The servers could not be reached, or refused the request.
    #[error(transparent)]
    Core(#[from] Error),
}

impl<N: Integer> Counter<N> {
    /// Creates the counter at `path`. Nothing is written before the first change; the number is 0 until then.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule or is the root.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        Ok(Self { versioned: VersionedNode::new(client, path).in_operation("counter")?, number: PhantomData })
    }

    /// Returns the path as given.
    pub fn path(&self) -> &str {
        self.versioned.path()
    }

    /// Returns the current number on the server that this client is connected to, or 0 if it was never
    /// changed.
    ///
    /// # Errors
    /// [`CounterError::Corrupted`]; [`CounterError::Core`] with `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn get(&self) -> impl Future<Output = Result<N, CounterError>> + Send + use<N> {
        let counter = self.clone();
        async move { counter.number(counter.versioned.read().await.in_operation("get")?.as_ref()) }
    }

    /// Adds 1.
    ///
    /// # Errors
    /// Same as [`add`](Self::add).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the number may have been changed.
    pub fn increment(&self) -> impl Future<Output = Result<Counted<N>, CounterError>> + Send + use<N> {
        self.add(N::ONE).map(|added| added.in_operation("increment"))
    }

    /// Subtracts 1.
    ///
    /// # Errors
    /// Same as [`add`](Self::add).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the number may have been changed.
    pub fn decrement(&self) -> impl Future<Output = Result<Counted<N>, CounterError>> + Send + use<N> {
        self.subtract(N::ONE).map(|subtracted| subtracted.in_operation("decrement"))
    }

    /// Adds `delta`.
    ///
    /// # Errors
    /// [`CounterError::Corrupted`], [`CounterError::Overflow`]; [`CounterError::Core`] with `NoAuth`,
    /// `Timeout` (also if other clients wrote first on every attempt), `Closed`, and with `OutcomeUnknown`
    /// only if the session ended before the outcome could be determined.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the number may have been changed.
    pub fn add(&self, delta: N) -> impl Future<Output = Result<Counted<N>, CounterError>> + Send + use<N> {
        let counter = self.clone();
        async move { counter.change(|before| before.plus(delta)).await.in_operation("add") }
    }

    /// Subtracts `delta`.
    ///
    /// # Errors
    /// Same as [`add`](Self::add).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the number may have been changed.
    pub fn subtract(
        &self,
        delta: N,
    ) -> impl Future<Output = Result<Counted<N>, CounterError>> + Send + use<N> {
        let counter = self.clone();
        async move { counter.change(|before| before.minus(delta)).await.in_operation("subtract") }
    }

    /// Sets the number, even if the data was corrupted. Corresponds to Curator's `forceSet`.
    ///
    /// # Errors
    /// Same as [`add`](Self::add).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the number may have been set.
    pub fn set(&self, number: N) -> impl Future<Output = Result<(), CounterError>> + Send + use<N> {
        let counter = self.clone();
        async move { Ok(counter.versioned.set(number.encode()).await.in_operation("set")?) }
    }

    /// Sets the number if it is `expected`. Returns false if it is another number, or was never set.
    ///
    /// # Errors
    /// Same as [`add`](Self::add).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the number may have been set.
    pub fn compare_and_set(
        &self,
        expected: N,
        number: N,
    ) -> impl Future<Output = Result<bool, CounterError>> + Send + use<N> {
        let counter = self.clone();
        async move { counter.replace(expected, number).await.in_operation("compare_and_set") }
    }

    async fn replace(&self, expected: N, number: N) -> Result<bool, CounterError> {
        let mut cas = self.versioned.cas_loop();
        // A server that lags behind may show an older number.
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

    /// Sets the number if it was never set. Returns false if it was.
    ///
    /// # Errors
    /// Same as [`add`](Self::add).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the number may have been set.
    pub fn initialize(&self, number: N) -> impl Future<Output = Result<bool, CounterError>> + Send + use<N> {
        let counter = self.clone();
        async move {
            let written = counter.versioned.write(None, &number.encode(), |transaction| transaction).await;
            Ok(written.in_operation("initialize")?.is_some())
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
                // The server may lag behind and show an older number.
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

impl InOperation for CounterError {
    fn in_operation(self, operation: &'static str) -> Self {
        match self {
            Self::Core(error) => Self::Core(error.in_operation(operation)),
            other => other,
        }
    }
}

impl CounterError {
    /// Returns true if the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Core(error) if error.is_retryable())
    }

    /// Returns true if the change may have been applied despite the error.
    pub fn may_have_applied(&self) -> bool {
        matches!(self, Self::Core(error) if error.may_have_applied())
    }

    /// Returns the path that the error is about.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Corrupted { path, .. } | Self::Overflow { path } => Some(path),
            Self::Core(error) => error.path(),
        }
    }
}

impl From<CounterError> for Error {
    fn from(error: CounterError) -> Self {
        let kind = match &error {
            CounterError::Corrupted { .. } => ErrorKind::InvalidData,
            CounterError::Overflow { .. } => ErrorKind::InvalidInput,
            CounterError::Core(error) => return error.clone(),
        };
        let path = error.path().map(str::to_owned);
        Self::of_recipe(kind, "count", error).at_path(path.as_deref())
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

/// Number type of a [`Counter`](crate::Counter): `i64` or `i32`.
pub trait Integer: Copy + Ord + Send + Sync + fmt::Debug + sealed::Integer + 'static {}

impl Integer for i32 {}
impl Integer for i64 {}

pub(crate) mod sealed {
    use super::Bytes;

    pub trait Integer: Sized {
        const BYTES: usize;
        const ZERO: Self;
        const ONE: Self;

        fn encode(self) -> Bytes;
        /// Returns `None` if there are too few bytes.
        fn decode(data: &[u8]) -> Option<Self>;
        fn plus(self, other: Self) -> Option<Self>;
        fn minus(self, other: Self) -> Option<Self>;
    }

    macro_rules! integer {
        ($($integer:ty),+) => {$(
            impl Integer for $integer {
                const BYTES: usize = size_of::<$integer>();
                const ZERO: Self = 0;
                const ONE: Self = 1;

                fn encode(self) -> Bytes {
                    Bytes::copy_from_slice(&self.to_be_bytes())
                }

                fn decode(data: &[u8]) -> Option<Self> {
                    // A node that another program created without data has not been counted yet.
                    if data.is_empty() {
                        return Some(0);
                    }
                    data.first_chunk().map(|bytes| Self::from_be_bytes(*bytes))
                }

                fn plus(self, other: Self) -> Option<Self> {
                    self.checked_add(other)
                }

                fn minus(self, other: Self) -> Option<Self> {
                    self.checked_sub(other)
                }
            }
        )+};
    }

    integer!(i32, i64);
}
