//! Settings of a client from environment variables.

use super::{Options, ParentKind};
use crate::error::Error;
use crate::time::{DURATION_RULE, parse_duration};
use std::ffi::{OsStr, OsString};
use std::time::Duration;

/// Prefix of the names of all variables.
const PREFIX: &str = "DOCENT_";

impl Options {
    /// Reads the settings from the process's environment: `DOCENT_CONNECT`, and each other field in capitals
    /// after `DOCENT_`, for example `DOCENT_SESSION_TIMEOUT=30s`. An empty variable counts as not set. A
    /// switch is `true` or `false`.
    ///
    /// Other variables that begin with `DOCENT_` are ignored with a warning in the log. They may be typing
    /// errors, or belong to other software, like those that Kubernetes derives from the names of services.
    ///
    /// # Errors
    /// `InvalidInput` with the variable, its value and the rule, if `DOCENT_CONNECT` is not set or a value
    /// breaks its rule.
    pub fn from_env() -> Result<Self, Error> {
        Self::from_vars(std::env::vars_os())
    }

    /// Like [`from_env`](Self::from_env), from the given variables: for tests, which should not change the
    /// environment of their process.
    ///
    /// # Errors
    /// The errors of [`from_env`](Self::from_env).
    pub fn from_vars<K, V>(vars: impl IntoIterator<Item = (K, V)>) -> Result<Self, Error>
    where
        K: Into<OsString>,
        V: Into<OsString>,
    {
        let options = Self::new("").with_vars(vars)?;
        if options.connect.is_empty() {
            return Err(invalid("CONNECT must be set to the servers, such as \"zk1:2181,zk2:2181/shop\""));
        }
        Ok(options)
    }

    /// Returns these settings, overridden by the given variables: for a configuration file that the
    /// environment overrides.
    ///
    /// # Errors
    /// `InvalidInput` with the variable, its value and the rule, if a value breaks its rule.
    pub fn with_vars<K, V>(mut self, vars: impl IntoIterator<Item = (K, V)>) -> Result<Self, Error>
    where
        K: Into<OsString>,
        V: Into<OsString>,
    {
        for (name, value) in vars {
            let (name, value) = (name.into(), value.into());
            let Some(field) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
            if !value.is_empty() {
                self.set_var(field, text(field, &value)?)?;
            }
        }
        Ok(self)
    }

    fn set_var(&mut self, field: &str, value: String) -> Result<(), Error> {
        match field {
            "CONNECT" => self.connect = value,
            "NAMESPACE" => self.namespace = Some(value),
            "LABEL" => self.label = Some(value),
            "IDENTITY" => self.identity = Some(value),
            "SESSION_TIMEOUT" => self.session_timeout = Some(duration(field, &value)?),
            "OPERATION_TIMEOUT" => self.operation_timeout = Some(duration(field, &value)?),
            "SERVER_TICK" => self.server_tick = Some(duration(field, &value)?),
            "CREDENTIALS_FILE" => self.credentials_file = Some(value.into()),
            "SASL_CREDENTIALS_FILE" => self.sasl_credentials_file = Some(value.into()),
            "SASL_GSSAPI" => self.sasl_gssapi = switch(field, &value)?,
            "SASL_SERVICE" => self.sasl_service = Some(value),
            "SASL_SERVER_PRINCIPAL" => self.sasl_server_principal = Some(value),
            "ALLOW_PLAINTEXT_AUTH" => self.allow_plaintext_auth = switch(field, &value)?,
            "TLS_CA_FILE" => self.tls_ca_file = Some(value.into()),
            "TLS_CERT_FILE" => self.tls_cert_file = Some(value.into()),
            "TLS_KEY_FILE" => self.tls_key_file = Some(value.into()),
            "TLS_SERVER_NAME" => self.tls_server_name = Some(value),
            "TRACK_ENSEMBLE" => self.track_ensemble = switch(field, &value)?,
            "READ_ONLY" => self.read_only = switch(field, &value)?,
            "PERSISTENT_WATCHES" => self.persistent_watches = switch(field, &value)?,
            "PARENTS" => self.parents = Some(parents(&value)?),
            "DEDICATED_THREAD" => self.dedicated_thread = switch(field, &value)?,
            // Event: An environment variable begins with `DOCENT_` but is not the name of a setting. It is
            // ignored.
            // Action: Correct the name if it is a typing error. Otherwise the variable can stay.
            // Without client: it is not built yet.
            _ => {
                tracing::warn!(target: "docent::client", variable = format!("{PREFIX}{field}"), "unknown setting; variable ignored");
            }
        }
        Ok(())
    }
}

fn text(field: &str, value: &OsStr) -> Result<String, Error> {
    let text = value.to_str().map(str::to_owned);
    text.ok_or_else(|| invalid(&format!("{field} {value:?} must be valid UTF-8")))
}

fn duration(field: &str, value: &str) -> Result<Duration, Error> {
    parse_duration(value).ok_or_else(|| invalid(&format!("{field} {value:?} {DURATION_RULE}")))
}

fn parents(value: &str) -> Result<ParentKind, Error> {
    let kind = value.parse();
    kind.map_err(|_| invalid(&format!("PARENTS {value:?} must be \"container\" or \"persistent\"")))
}

fn switch(field: &str, value: &str) -> Result<bool, Error> {
    value.parse().map_err(|_| invalid(&format!("{field} {value:?} must be \"true\" or \"false\"")))
}

fn invalid(detail: &str) -> Error {
    Error::invalid_input("options", format!("{PREFIX}{detail}"))
}
