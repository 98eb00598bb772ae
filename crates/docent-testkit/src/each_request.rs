use crate::proxy::Rule;
use crate::{Armed, FaultProxy};
use docent_proto::OpCode;
use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::net::{ToSocketAddrs, lookup_host};
use tokio::time::timeout;

/// Time limit of one run.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Maximum number of requests of a case.
const MOST: usize = 1_000;

/// Way in which a link breaks at a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LinkFault {
    /// The link is reset before the server receives the request.
    Before,
    /// The server applies the request, and the link is reset in place of the reply.
    After,
    /// Like `After`. In addition, all sessions that came through the run's proxy are ended before a new link
    /// is possible.
    SessionEnd,
}

impl LinkFault {
    const ALL: [Self; 3] = [Self::Before, Self::After, Self::SessionEnd];
}

impl fmt::Display for LinkFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Before => "the link broke before",
            Self::After => "the link broke after",
            Self::SessionEnd => "the link broke, and the session ended, after",
        })
    }
}

/// One run of a case by [`break_each_request`].
#[derive(Debug)]
pub struct FaultRun {
    link: FaultProxy,
    fault: LinkFault,
    request: usize,
    number: usize,
    last: Arc<Mutex<Option<OpCode>>>,
    armed: Armed,
}

impl FaultRun {
    /// Returns the address for the client whose link breaks.
    pub fn connect_string(&self) -> String {
        self.link.connect_string()
    }

    /// Returns the proxy of that client. [`SessionEnd`](LinkFault::SessionEnd) [heals](FaultProxy::heal) it.
    pub fn link(&self) -> &FaultProxy {
        &self.link
    }

    /// Returns the number of this run, starting at 0. Use it in paths, so that each run has its own nodes.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Returns how the link breaks.
    pub fn fault(&self) -> LinkFault {
        self.fault
    }
}

impl fmt::Display for FaultRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.armed.has_fired() {
            return write!(f, "the link did not break: request {} was not sent", self.request);
        }
        write!(f, "{} request {}", self.fault, self.request)?;
        match *self.last.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(op) => write!(f, " ({op:?})"),
            None => Ok(()),
        }
    }
}

/// Prints the run in which a case panicked.
impl Drop for FaultRun {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("{self}");
        }
    }
}

/// Error of a case that failed in a run of [`break_each_request`] or
/// [`drop_at_each_poll`](crate::drop_at_each_poll).
#[derive(Debug, thiserror::Error)]
#[error("{run}: {source}")]
pub struct FailedRun {
    pub(crate) run: String,
    pub(crate) source: Box<dyn Error + Send + Sync>,
}

/// Runs `case` for each request that it sends and each [`LinkFault`], and breaks the link at that request.
/// The last runs have no fault. Returns the number of requests.
///
/// The case connects its client to [`FaultRun::connect_string`], executes the operation to test, and checks
/// the result. Requests are counted from the first one on the link, without pings and the handshake. The case
/// should finish what it starts: requests that it leaves to the background may or may not be counted.
///
/// The fault [`SessionEnd`](LinkFault::SessionEnd) requires a case that waits for its requests. If the case
/// returns earlier, the session is not ended.
///
/// # Errors
/// [`FailedRun`] with the fault and the request if the case returns an error or does not finish within 60 s.
/// Also if the case sends no request, or 1,000 or more, or if the server or a proxy cannot be reached. If the
/// case panics, the fault and the request are printed.
///
/// # Cancel safety
/// This function is cancel safe. Cancelling it drops the current run.
///
/// # Examples
/// The limit is published no matter what happens to the link:
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use docent_config::Config;
/// # use docent_core::Client;
/// # use docent_server::Server;
/// # use docent_testkit::{FaultRun, break_each_request};
/// # use std::error::Error;
///
/// async fn publish(run: &FaultRun) -> Result<(), Box<dyn Error + Send + Sync>> {
///     let client = Client::connect(run.connect_string()).await?;
///     let limit = Config::<u32>::new(&client, &format!("/limits/{}", run.number()))?;
///     while limit.publish(&1).await.is_err() {} // fails if the session ends meanwhile
///     assert_eq!(limit.get().await?.map(|limit| *limit.value()), Some(1));
///     client.close().await;
///     Ok(())
/// }
///
/// let server = Server::start().await?;
/// let requests = break_each_request(server.connect_string(), publish).await?;
/// assert!(requests >= 2);
/// # Ok(()) }
/// ```
pub async fn break_each_request<E: Into<Box<dyn Error + Send + Sync>>>(
    server: impl ToSocketAddrs,
    case: impl AsyncFn(&FaultRun) -> Result<(), E>,
) -> Result<usize, FailedRun> {
    let failed = |run: &dyn fmt::Display, source| FailedRun { run: run.to_string(), source };
    let address = match lookup_host(server).await.map(|mut addresses| addresses.next()) {
        Ok(Some(address)) => address,
        Ok(None) => return Err(failed(&"the server", "its name does not resolve to an address".into())),
        Err(error) => return Err(failed(&"the server", error.into())),
    };
    let (mut request, mut number) = (1, 0);
    loop {
        let mut reached = false;
        for fault in LinkFault::ALL {
            let link =
                FaultProxy::start(address).await.map_err(|error| failed(&"the proxy", error.into()))?;
            let run = FaultRun::new(link, fault, request, number);
            reached |= run.run(&case).await.map_err(|error| failed(&run, error))?;
            number += 1;
        }
        match request {
            1 if !reached => return Err(failed(&"the case", "it sent no request on the link".into())),
            _ if !reached => return Ok(request - 1),
            MOST => return Err(failed(&"the case", format!("it sent {MOST} requests or more").into())),
            _ => request += 1,
        }
    }
}

impl FaultRun {
    fn new(link: FaultProxy, fault: LinkFault, request: usize, number: usize) -> Self {
        let last = Arc::new(Mutex::new(None));
        let seen = Arc::clone(&last);
        let counted = Rule::on_any().when(move |request| {
            let is_counted = request.op() != OpCode::Ping;
            if is_counted {
                *seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(request.op());
            }
            is_counted
        });
        let nth = counted.nth(request);
        let armed = link.add(match fault {
            LinkFault::Before => nth.reset_before(),
            LinkFault::After => nth.reset_after(),
            LinkFault::SessionEnd => nth.cut_after(),
        });
        Self { link, fault, request, number, last, armed }
    }

    /// Runs the `case`. Returns whether it sent the request at which the link breaks.
    async fn run<E: Into<Box<dyn Error + Send + Sync>>>(
        &self,
        case: &impl AsyncFn(&Self) -> Result<(), E>,
    ) -> Result<bool, Box<dyn Error + Send + Sync>> {
        let ending = async {
            self.armed.fired().await;
            if self.fault == LinkFault::SessionEnd {
                self.link.expire_all().await?;
                self.link.heal().await?;
            }
            std::future::pending::<Result<(), Box<dyn Error + Send + Sync>>>().await
        };
        tokio::select! {
            done = timeout(LIMIT, case(self)) => match done {
                Ok(done) => done.map_err(Into::into)?,
                Err(_) => return Err(format!("the case did not finish within {LIMIT:?}").into()),
            },
            failed = ending => failed?,
        }
        Ok(self.armed.has_fired())
    }
}
