//! The client of a verb.

use crate::app::App;
use crate::child::Signals;
use crate::exit::Failure;
use docent::client::{Client, ClientBuilder, ConnectionState};
use std::future::Future;
use std::mem::replace;
use std::pin::pin;
use std::time::Duration;
use tokio::time::timeout;

/// Time limit of operations if none was given: the library's default.
const OPERATION: Duration = Duration::from_secs(15);

/// Longest wait for the servers to end the session before the program exits.
const CLOSE: Duration = Duration::from_secs(2);

impl App {
    /// Returns a client builder with the given settings.
    ///
    /// # Errors
    /// `Usage` for settings that break a rule.
    pub(crate) fn client_builder(&self) -> Result<ClientBuilder, Failure> {
        let options = self.global.client_options()?;
        options.builder().map_err(|error| Failure::usage(error.to_string()))
    }

    /// Connects with the given settings.
    ///
    /// # Errors
    /// `Usage` for settings that break a rule, `Unreachable` if no server answers in time, `NoPermission` if
    /// the servers refuse the credentials.
    pub(crate) async fn connect(&self) -> Result<Client, Failure> {
        Ok(self.client_builder()?.connect().await?)
    }

    /// Like [`connect`](Self::connect), but stops when a signal comes. `label` is written to the nodes of the
    /// client. Connecting takes at most `limit`, unless `--timeout` is given.
    ///
    /// # Errors
    /// Same as [`connect`](Self::connect); also `Signal`.
    pub(crate) async fn connect_or_signal(
        &self,
        signals: &mut Signals,
        label: Option<&str>,
        limit: Option<Duration>,
    ) -> Result<Client, Failure> {
        let mut builder = self.client_builder()?;
        if let Some(label) = label {
            builder = builder.label(label);
        }
        let Some(limit) = limit.filter(|_| self.global.timeout.is_none()) else {
            return Ok(signals.or(builder.connect()).await??);
        };
        let later = self.global.client_options()?.operation_timeout.unwrap_or(OPERATION);
        let connecting = builder.operation_timeout(limit.min(later)).connect();
        Ok(signals.or(connecting).await??.with_operation_timeout(later))
    }

    /// Connects, runs `work` with the client and the incoming signals, and ends the session.
    ///
    /// # Errors
    /// Same as [`connect_or_signal`](Self::connect_or_signal), and those of `work`.
    pub(crate) async fn with_signals<T>(
        &self,
        work: impl AsyncFnOnce(&Client, &mut Signals) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.with_client(&mut Signals::listen()?, work).await
    }

    /// Like [`with_signals`](Self::with_signals), for a caller that already listens for signals.
    ///
    /// # Errors
    /// Same as [`with_signals`](Self::with_signals).
    pub(crate) async fn with_client<T>(
        &self,
        signals: &mut Signals,
        work: impl AsyncFnOnce(&Client, &mut Signals) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let client = self.connect_or_signal(signals, None, None).await?;
        let done = self.labelled(&client, work(&client, signals)).await;
        close(&client).await;
        done
    }

    /// Runs `work`, and says on standard error when the client begins to read from a server that has lost its
    /// quorum, and when that ends.
    pub(crate) async fn labelled<T>(&self, client: &Client, work: impl Future<Output = T>) -> T {
        let (mut state, mut is_labelled) = (client.state(), false);
        let mut label = |now: ConnectionState| match now {
            ConnectionState::ReadOnly if !replace(&mut is_labelled, true) => {
                self.output.remark("the server has lost its quorum: what it shows may be out of date");
            }
            ConnectionState::Connected if replace(&mut is_labelled, false) => {
                self.output.remark("connected to a server with a quorum again");
            }
            _ => {}
        };
        label(state.current().state);
        let mut work = pin!(work);
        let done = loop {
            tokio::select! {
                biased;
                Some(now) = state.changed() => label(now.state),
                done = &mut work => break done,
            }
        };
        // The state may have changed before the last read.
        label(client.state().current().state);
        done
    }
}

/// Ends the session, so that the servers immediately free what it holds. If they do not answer, the session
/// expires by its timeout.
pub(crate) async fn close(client: &Client) {
    let _ = timeout(CLOSE, client.close()).await;
}
