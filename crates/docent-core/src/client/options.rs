use super::{ClientBuilder, ParentKind};
use crate::error::Error;
use crate::node::namespace;
use crate::session::connect_string::{ConnectString, without_credentials};
#[cfg(feature = "tls")]
use crate::session::link::tls::Tls;
use crate::session::sasl::{Gssapi, Sasl};
use crate::time::HumaneDuration;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Settings of a client, as found in a program's configuration file or environment.
///
/// Read by serde from any format, or from variables by [`from_env`](Self::from_env).
/// [`builder`](Self::builder) converts the settings into a [`ClientBuilder`], which also has the settings
/// that only code can express. Unknown fields are rejected. A duration is a number of seconds, or a text such
/// as `"1500ms"`, `"30s"`, `"2m"` or `"1h"`. A missing field has the builder's default.
///
/// Credentials belong in files. They are neither in these settings nor on a command line, where every user of
/// the machine can read them.
///
/// ```
/// use docent_core::Options;
///
/// let options: Options = serde_json::from_str(
///     r#"{ "connect": "zk1:2181,zk2:2181/shop", "session_timeout": "30s", "operation_timeout": 5 }"#,
/// )?;
/// let builder = options.builder()?;
/// # let _ = builder;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Options {
    /// Servers and chroot, for example `zk1:2181,zk2:2181/shop`.
    pub connect: String,
    /// See [`ClientBuilder::namespace`].
    #[serde(default)]
    pub namespace: Option<String>,
    /// See [`ClientBuilder::label`].
    #[serde(default)]
    pub label: Option<String>,
    /// See [`ClientBuilder::identity`].
    #[serde(default)]
    pub identity: Option<String>,
    /// See [`ClientBuilder::session_timeout`].
    #[serde(default, deserialize_with = "session_timeout")]
    pub session_timeout: Option<Duration>,
    /// See [`ClientBuilder::operation_timeout`].
    #[serde(default, deserialize_with = "operation_timeout")]
    pub operation_timeout: Option<Duration>,
    /// See [`ClientBuilder::server_tick`].
    #[serde(default, deserialize_with = "server_tick")]
    pub server_tick: Option<Duration>,
    /// File with `user:password` on its first line, for [`ClientBuilder::auth_digest`]. The file must contain
    /// nothing else and have at most 64 KiB.
    #[serde(default)]
    pub credentials_file: Option<PathBuf>,
    /// File with `user:password` on its first line, for [`ClientBuilder::sasl`] with DIGEST-MD5. The file
    /// must contain nothing else and have at most 64 KiB.
    #[serde(default)]
    pub sasl_credentials_file: Option<PathBuf>,
    /// Whether a Kerberos ticket proves the client's identity: [`ClientBuilder::sasl`] with GSSAPI. Needs a
    /// build with [`--cfg docent_gssapi`](Sasl::gssapi). Excludes `sasl_credentials_file`. Default false.
    #[serde(default)]
    pub sasl_gssapi: bool,
    /// See [`Gssapi::service`]. Requires `sasl_gssapi`. Excludes `sasl_server_principal`.
    #[serde(default)]
    pub sasl_service: Option<String>,
    /// See [`Gssapi::server_principal`]. Requires `sasl_gssapi`.
    #[serde(default)]
    pub sasl_server_principal: Option<String>,
    /// See [`ClientBuilder::allow_plaintext_auth`]. Default false.
    #[serde(default)]
    pub allow_plaintext_auth: bool,
    /// File with the certificates of trusted authorities in PEM. If set, the client connects over TLS. Needs
    /// the feature `tls`, like the other TLS fields.
    #[serde(default)]
    pub tls_ca_file: Option<PathBuf>,
    /// File with the client's own certificate and its chain in PEM. Requires a key and authorities.
    #[serde(default)]
    pub tls_cert_file: Option<PathBuf>,
    /// File with the key of the client's own certificate in PEM.
    #[serde(default)]
    pub tls_key_file: Option<PathBuf>,
    /// Name that every server's certificate must be valid for, instead of the host in `connect`.
    #[serde(default)]
    pub tls_server_name: Option<String>,
    /// See [`ClientBuilder::dedicated_thread`]. Default false.
    #[serde(default)]
    pub dedicated_thread: bool,
    /// See [`ClientBuilder::track_ensemble`]. Default false.
    #[serde(default)]
    pub track_ensemble: bool,
    /// See [`ClientBuilder::read_only`]. Default false.
    #[serde(default)]
    pub read_only: bool,
    /// See [`ClientBuilder::persistent_watches`]. Default false.
    #[serde(default)]
    pub persistent_watches: bool,
    /// See [`ClientBuilder::parents`]: `container` or `persistent`.
    #[serde(default)]
    pub parents: Option<ParentKind>,
}

/// Maximum size of a credentials file in bytes.
const LARGEST_FILE: u64 = 64 * 1024;

impl Options {
    /// Creates settings for these servers, with defaults for everything else.
    pub fn new(connect: impl Into<String>) -> Self {
        Self {
            connect: connect.into(),
            namespace: None,
            label: None,
            identity: None,
            session_timeout: None,
            operation_timeout: None,
            server_tick: None,
            credentials_file: None,
            sasl_credentials_file: None,
            sasl_gssapi: false,
            sasl_service: None,
            sasl_server_principal: None,
            allow_plaintext_auth: false,
            tls_ca_file: None,
            tls_cert_file: None,
            tls_key_file: None,
            tls_server_name: None,
            dedicated_thread: false,
            read_only: false,
            persistent_watches: false,
            track_ensemble: false,
            parents: None,
        }
    }

    /// Returns the builder of a client with these settings. Blocks while it reads the credentials file; the
    /// TLS files are read when the client is built.
    ///
    /// # Errors
    /// `InvalidInput` with the field, its value and the rule. Reasons are a connect string or namespace that
    /// breaks a rule, a credentials file that is unreadable or malformed, SASL fields that do not go
    /// together, and TLS fields that do not go together or lack the feature `tls`. Errors never repeat a
    /// file's content. Ranges of durations, and whether GSSAPI is built in, are checked when the client is
    /// built.
    pub fn builder(&self) -> Result<ClientBuilder, Error> {
        ConnectString::parse(&self.connect)?;
        let mut builder = ClientBuilder::new(&self.connect);
        if let Some(path) = &self.namespace {
            check_namespace(path)?;
            builder = builder.namespace(path);
        }
        if let Some(label) = &self.label {
            builder = builder.label(label);
        }
        if let Some(identity) = &self.identity {
            builder = builder.identity(identity);
        }
        builder = self.timed(builder);
        if let Some((user, password)) = self.credentials()? {
            builder = builder.auth_digest(user, password);
        }
        if let Some(sasl) = self.sasl()? {
            builder = builder.sasl(sasl);
        }
        if self.allow_plaintext_auth {
            builder = builder.allow_plaintext_auth();
        }
        if self.dedicated_thread {
            builder = builder.dedicated_thread();
        }
        if self.track_ensemble {
            builder = builder.track_ensemble();
        }
        if self.read_only {
            builder = builder.read_only();
        }
        if self.persistent_watches {
            builder = builder.persistent_watches();
        }
        if let Some(kind) = self.parents {
            builder = builder.parents(kind);
        }
        self.secured(builder)
    }

    /// Reads user and password from the credentials file; returns `None` if no file is set. Blocks while it
    /// reads.
    ///
    /// # Errors
    /// `InvalidInput` if the file is unreadable or malformed, without its content.
    pub fn credentials(&self) -> Result<Option<(String, SecretString)>, Error> {
        self.credentials_file.as_deref().map(|file| read_credentials("credentials_file", file)).transpose()
    }

    /// Like [`credentials`](Self::credentials), for the file with the user and password of SASL.
    ///
    /// # Errors
    /// `InvalidInput` if the file is unreadable or malformed, without its content.
    pub fn sasl_credentials(&self) -> Result<Option<(String, SecretString)>, Error> {
        let read = |file| read_credentials("sasl_credentials_file", file);
        self.sasl_credentials_file.as_deref().map(read).transpose()
    }

    /// Returns the identity for SASL, if these settings have one.
    fn sasl(&self) -> Result<Option<Sasl>, Error> {
        let (service, principal) = (&self.sasl_service, &self.sasl_server_principal);
        if self.sasl_gssapi {
            if let Some(file) = &self.sasl_credentials_file {
                return Err(invalid(format!(
                    "sasl_credentials_file {file:?} must not come with sasl_gssapi"
                )));
            }
            if let (Some(service), Some(principal)) = (service, principal) {
                return Err(invalid(format!(
                    "sasl_service {service:?} must not come with sasl_server_principal {principal:?}"
                )));
            }
            let mut gssapi = Gssapi::new();
            if let Some(service) = service {
                gssapi = gssapi.service(service);
            }
            if let Some(principal) = principal {
                gssapi = gssapi.server_principal(principal);
            }
            return Ok(Some(Sasl::gssapi(gssapi)));
        }
        for (field, value) in [("sasl_service", service), ("sasl_server_principal", principal)] {
            if let Some(value) = value {
                return Err(invalid(format!("{field} {value:?} must come with sasl_gssapi")));
            }
        }
        Ok(self.sasl_credentials()?.map(|(user, password)| Sasl::digest_md5(user, password)))
    }

    fn timed(&self, mut builder: ClientBuilder) -> ClientBuilder {
        if let Some(timeout) = self.session_timeout {
            builder = builder.session_timeout(timeout);
        }
        if let Some(timeout) = self.operation_timeout {
            builder = builder.operation_timeout(timeout);
        }
        match self.server_tick {
            Some(tick) => builder.server_tick(tick),
            None => builder,
        }
    }

    fn secured(&self, builder: ClientBuilder) -> Result<ClientBuilder, Error> {
        let Some(authorities) = &self.tls_ca_file else {
            return match self.tls_without_authorities() {
                Some((field, value)) => Err(invalid(format!("{field} {value:?} must come with tls_ca_file"))),
                None => Ok(builder),
            };
        };
        let identity = match (&self.tls_cert_file, &self.tls_key_file) {
            (Some(chain), Some(key)) => Some((chain, key)),
            (None, None) => None,
            (Some(chain), None) => {
                return Err(invalid(format!("tls_cert_file {chain:?} must come with tls_key_file")));
            }
            (None, Some(key)) => {
                return Err(invalid(format!("tls_key_file {key:?} must come with tls_cert_file")));
            }
        };
        self.with_tls(builder, authorities, identity)
    }

    #[cfg(feature = "tls")]
    fn with_tls(
        &self,
        builder: ClientBuilder,
        authorities: &Path,
        identity: Option<(&PathBuf, &PathBuf)>,
    ) -> Result<ClientBuilder, Error> {
        let mut tls = Tls::new().ca_pem_file(authorities);
        if let Some((chain, key)) = identity {
            tls = tls.client_identity_pem_files(chain, key);
        }
        if let Some(name) = &self.tls_server_name {
            tls = tls.server_name(name);
        }
        Ok(builder.tls(tls))
    }

    #[cfg(not(feature = "tls"))]
    fn with_tls(
        &self,
        builder: ClientBuilder,
        authorities: &Path,
        _: Option<(&PathBuf, &PathBuf)>,
    ) -> Result<ClientBuilder, Error> {
        drop(builder);
        Err(invalid(format!("tls_ca_file {authorities:?} needs docent's feature \"tls\"")))
    }

    /// Returns a TLS field that is set, with its value.
    fn tls_without_authorities(&self) -> Option<(&'static str, String)> {
        let file = |file: &PathBuf| file.display().to_string();
        (self.tls_cert_file.as_ref().map(|path| ("tls_cert_file", file(path))))
            .or_else(|| self.tls_key_file.as_ref().map(|path| ("tls_key_file", file(path))))
            .or_else(|| self.tls_server_name.clone().map(|name| ("tls_server_name", name)))
    }
}

fn invalid(detail: String) -> Error {
    Error::invalid_input("options", detail)
}

fn check_namespace(path: &str) -> Result<(), Error> {
    namespace::check("options", path).map_err(|_| {
        invalid(format!(
            "namespace {path:?} must be an absolute path without a trailing slash, such as \"/shop\""
        ))
    })
}

/// Reads user and password from the file of the field `field`. Errors repeat nothing of its content.
fn read_credentials(field: &str, file: &Path) -> Result<(String, SecretString), Error> {
    let refused = |rule: String| invalid(format!("{field} {file:?} {rule}"));
    let unreadable = |error: std::io::Error| refused(format!("must be readable: {error}"));
    let length = fs::metadata(file).map_err(unreadable)?.len();
    if length > LARGEST_FILE {
        return Err(refused(format!("must have at most {LARGEST_FILE} bytes, and has {length}")));
    }
    let text = SecretString::from(fs::read_to_string(file).map_err(unreadable)?);
    let line = text.expose_secret().trim_end_matches(['\r', '\n']);
    match line.split_once(':') {
        Some((user, password)) if !user.is_empty() && !line.contains(['\r', '\n']) => {
            Ok((user.to_owned(), SecretString::from(password)))
        }
        _ => Err(refused("must be one line of user:password".to_owned())),
    }
}

/// Deserializes the duration of the field `name`, which errors mention.
fn duration<'de, D: Deserializer<'de>>(name: &str, deserializer: D) -> Result<Option<Duration>, D::Error> {
    let read = Option::<HumaneDuration>::deserialize(deserializer);
    let named = |error: D::Error| serde::de::Error::custom(format_args!("{name}: {error}"));
    read.map(|humane| humane.map(|humane| humane.0)).map_err(named)
}

fn session_timeout<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    duration("session_timeout", deserializer)
}

fn operation_timeout<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    duration("operation_timeout", deserializer)
}

fn server_tick<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    duration("server_tick", deserializer)
}

/// Prints files by their paths only, and omits everything before an '@' in the connect string.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("connect", &without_credentials(&self.connect))
            .field("namespace", &self.namespace)
            .field("label", &self.label)
            .field("identity", &self.identity)
            .field("session_timeout", &self.session_timeout)
            .field("operation_timeout", &self.operation_timeout)
            .field("server_tick", &self.server_tick)
            .field("credentials_file", &self.credentials_file)
            .field("sasl_credentials_file", &self.sasl_credentials_file)
            .field("sasl_gssapi", &self.sasl_gssapi)
            .field("sasl_service", &self.sasl_service)
            .field("sasl_server_principal", &self.sasl_server_principal)
            .field("allow_plaintext_auth", &self.allow_plaintext_auth)
            .field("tls_ca_file", &self.tls_ca_file)
            .field("tls_cert_file", &self.tls_cert_file)
            .field("tls_key_file", &self.tls_key_file)
            .field("tls_server_name", &self.tls_server_name)
            .field("dedicated_thread", &self.dedicated_thread)
            .field("track_ensemble", &self.track_ensemble)
            .field("persistent_watches", &self.persistent_watches)
            .field("parents", &self.parents)
            .finish()
    }
}
