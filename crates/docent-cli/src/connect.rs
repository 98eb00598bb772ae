//! The client of a verb.

use crate::app::App;
use crate::child::Signals;
use crate::exit::Failure;
use docent::client::{Client, ClientBuilder};
use std::time::Duration;
use tokio::time::timeout;

/// Time limit of operations where none was given: the library's.
const OPERATION: Duration = Duration::from_secs(15);

/// Longest wait for the session to be ended at the servers before the program goes on to its end.
const CLOSE: Duration = Duration::from_secs(2);

impl App {
    /// A client builder with the settings that were given.
    ///
    /// # Errors
    /// `Usage` for settings that break a rule.
    pub(crate) fn client_builder(&self) -> Result<ClientBuilder, Failure> {
        let options = self.global.client_options()?;
        options.builder().map_err(|error| Failure::usage(error.to_string()))
    }

    /// Connects with the settings that were given.
    ///
    /// # Errors
    /// `Usage` for settings that break a rule, `Unreachable` when no server answers in time, `NoPermission`
    /// when the servers refuse the credentials.
    pub(crate) async fn connect(&self) -> Result<Client, Failure> {
        Ok(self.client_builder()?.connect().await?)
    }

    /// As [`connect`](Self::connect), until a signal comes. `label` stands in the nodes of the client. It
    /// takes at most `limit`, unless `--timeout` says how long.
    ///
    /// # Errors
    /// As [`connect`](Self::connect); `Signal`.
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

    /// Connects, runs `work` with the client and the signals that come, and ends the session.
    ///
    /// # Errors
    /// As [`connect_or_signal`](Self::connect_or_signal), and those of `work`.
    pub(crate) async fn with_signals<T>(
        &self,
        work: impl AsyncFnOnce(&Client, &mut Signals) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.with_client(&mut Signals::listen()?, work).await
    }

    /// As [`with_signals`](Self::with_signals), for a caller that listens for signals already.
    ///
    /// # Errors
    /// As [`with_signals`](Self::with_signals).
    pub(crate) async fn with_client<T>(
        &self,
        signals: &mut Signals,
        work: impl AsyncFnOnce(&Client, &mut Signals) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let client = self.connect_or_signal(signals, None, None).await?;
        let done = work(&client, signals).await;
        close(&client).await;
        done
    }
}

/// Ends the session, so that the servers free what it holds at once. Where they do not answer it ends by its
/// timeout.
pub(crate) async fn close(client: &Client) {
    let _ = timeout(CLOSE, client.close()).await;
}
