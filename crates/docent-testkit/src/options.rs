use docent_server::Dialect;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// System property with the digest of the super user.
const SUPER_DIGEST: &str = "zookeeper.DigestAuthenticationProvider.superDigest";

/// Class by which a server knows the scheme `sasl` in access control lists.
const SASL_PROVIDER: &str = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider";

/// Settings of a server, either a [`RealServer`](crate::RealServer) or an embedded one.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerOptions {
    /// Tick of the server, the unit of session expiry. Default: 200 ms.
    pub tick: Duration,
    /// Minimum session timeout. Default: 400 ms.
    pub min_session_timeout: Duration,
    /// Maximum session timeout. Default: 60 s.
    pub max_session_timeout: Duration,
    /// Whether clients may create nodes with a time to live. Default: `false`, as in ZooKeeper.
    pub extended_types: bool,
    /// Digest of the super user, who passes all access checks: `user:` and the SHA-1 of `user:password` in
    /// Base64. Default: none.
    pub super_digest: Option<String>,
    /// Users and passwords that SASL with DIGEST-MD5 accepts. Default: none, and the server offers no SASL.
    pub sasl_users: Vec<(String, String)>,
    /// Whether the server refuses every request on a link that has not authenticated with SASL. Default:
    /// `false`.
    pub require_sasl: bool,
    /// Interval at which the server deletes empty containers and nodes whose time to live has passed.
    /// Default: 200 ms.
    pub container_check_interval: Duration,
    /// Dialect of an embedded server; a real server is what it is. Default: the one that the environment
    /// variable `DOCENT_EMBEDDED_AS` names, or the current ZooKeeper.
    pub dialect: Dialect,
    /// Whether a real server also listens on a TLS port. The properties name the keys. Default: `false`.
    pub secure_port: bool,
    /// Number of silent ticks after which the leader of an ensemble and a follower drop each other. Default:
    /// 10.
    pub sync_limit: u32,
    /// Whether the servers of a real ensemble can be reconfigured. They then cannot be cut off from each
    /// other. Default: `false`.
    pub reconfig: bool,
    /// Whether servers of a real ensemble serve reads after they have lost their quorum. All servers then
    /// grant local sessions, because ZooKeeper 3.8 needs them in read-only mode. The servers upgrade a local
    /// session when it creates an ephemeral node. Default: `false`.
    pub read_only_mode: bool,
    /// Whether the header of an event from the embedded server contains the transaction that caused it, as in
    /// ZooKeeper 3.9 and later. A real server does what its version does. Default: `true` if the environment
    /// variable `DOCENT_EMBEDDED_AS` is `3.9`.
    pub zxid_in_events: bool,
    /// Whether the Java process of a real server runs with the JVM's default settings and a maximum heap of 1
    /// GiB, instead of small settings that start quickly. Default: `false`.
    pub long_lived: bool,
    /// Folder in which a real server creates its own folder for data, configuration and log. Default: the
    /// system's folder for temporary files.
    pub parent_folder: Option<PathBuf>,
    /// Further system properties for the Java process of a real server. Default: none.
    pub properties: Vec<(String, String)>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        let version = std::env::var("DOCENT_EMBEDDED_AS").unwrap_or_default();
        Self {
            dialect: version.parse().unwrap_or_default(),
            tick: Duration::from_millis(200),
            min_session_timeout: Duration::from_millis(400),
            max_session_timeout: Duration::from_secs(60),
            extended_types: false,
            super_digest: None,
            sasl_users: Vec::new(),
            require_sasl: false,
            container_check_interval: Duration::from_millis(200),
            secure_port: false,
            sync_limit: 10,
            reconfig: false,
            read_only_mode: false,
            zxid_in_events: version == "3.9",
            long_lived: false,
            parent_folder: None,
            properties: Vec::new(),
        }
    }
}

impl ServerOptions {
    /// Sets [`tick`](Self::tick).
    #[must_use]
    pub fn tick(mut self, tick: Duration) -> Self {
        self.tick = tick;
        self
    }

    /// Sets the minimum and maximum session timeout.
    #[must_use]
    pub fn session_timeouts(mut self, shortest: Duration, longest: Duration) -> Self {
        (self.min_session_timeout, self.max_session_timeout) = (shortest, longest);
        self
    }

    /// Sets [`extended_types`](Self::extended_types).
    #[must_use]
    pub fn extended_types(mut self, enabled: bool) -> Self {
        self.extended_types = enabled;
        self
    }

    /// Sets [`super_digest`](Self::super_digest).
    #[must_use]
    pub fn super_digest(mut self, digest: impl Into<String>) -> Self {
        self.super_digest = Some(digest.into());
        self
    }

    /// Adds one of [`sasl_users`](Self::sasl_users).
    #[must_use]
    pub fn sasl_user(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.sasl_users.push((user.into(), password.into()));
        self
    }

    /// Sets [`require_sasl`](Self::require_sasl).
    #[must_use]
    pub fn require_sasl(mut self, required: bool) -> Self {
        self.require_sasl = required;
        self
    }

    /// Sets [`container_check_interval`](Self::container_check_interval).
    #[must_use]
    pub fn container_check_interval(mut self, interval: Duration) -> Self {
        self.container_check_interval = interval;
        self
    }

    /// Sets [`secure_port`](Self::secure_port).
    #[must_use]
    pub fn secure_port(mut self, enabled: bool) -> Self {
        self.secure_port = enabled;
        self
    }

    /// Sets [`sync_limit`](Self::sync_limit).
    #[must_use]
    pub fn sync_limit(mut self, ticks: u32) -> Self {
        self.sync_limit = ticks;
        self
    }

    /// Sets [`reconfig`](Self::reconfig).
    #[must_use]
    pub fn reconfig(mut self, enabled: bool) -> Self {
        self.reconfig = enabled;
        self
    }

    /// Sets [`read_only_mode`](Self::read_only_mode).
    #[must_use]
    pub fn read_only_mode(mut self, enabled: bool) -> Self {
        self.read_only_mode = enabled;
        self
    }

    /// Sets [`dialect`](Self::dialect).
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// Sets [`zxid_in_events`](Self::zxid_in_events).
    #[must_use]
    pub fn zxid_in_events(mut self, enabled: bool) -> Self {
        self.zxid_in_events = enabled;
        self
    }

    /// Sets [`long_lived`](Self::long_lived).
    #[must_use]
    pub fn long_lived(mut self, enabled: bool) -> Self {
        self.long_lived = enabled;
        self
    }

    /// Sets [`parent_folder`](Self::parent_folder).
    #[must_use]
    pub fn parent_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.parent_folder = Some(folder.into());
        self
    }

    /// Adds one of [`properties`](Self::properties).
    #[must_use]
    pub fn property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.push((name.into(), value.into()));
        self
    }

    /// Returns the contents of the configuration file.
    pub(crate) fn config(&self, address: SocketAddr, secure: Option<SocketAddr>, data: &Path) -> String {
        let plain = format!(
            "tickTime={}\ndataDir={}\nclientPort={}\nclientPortAddress={}\nminSessionTimeout={}\n\
             maxSessionTimeout={}\nmaxClientCnxns=0\nreconfigEnabled={}\nlocalSessionsEnabled={}\n\
             localSessionsUpgradingEnabled={}\n",
            self.tick.as_millis(),
            data.display(),
            address.port(),
            address.ip(),
            self.min_session_timeout.as_millis(),
            self.max_session_timeout.as_millis(),
            self.reconfig,
            self.read_only_mode,
            self.read_only_mode,
        );
        match secure {
            Some(address) => {
                plain
                    + &format!(
                        "secureClientPort={}\nsecureClientPortAddress={}\n",
                        address.port(),
                        address.ip()
                    )
            }
            None => plain,
        }
    }

    /// Returns the contents of the file that names the users of SASL.
    pub(crate) fn jaas(&self) -> String {
        let users = self.sasl_users.iter().map(|(user, password)| format!(" user_{user}=\"{password}\""));
        let users: String = users.collect();
        format!("Server {{ org.apache.zookeeper.server.auth.DigestLoginModule required{users}; }};\n")
    }

    /// Returns the arguments of the Java process before the class name. `jaas` is the file with the users of
    /// SASL.
    pub(crate) fn java_arguments(&self, jaas: &Path) -> Vec<String> {
        // Settings for a short run: a small heap, a quick start, and no files outside the server's folder.
        let short = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"];
        let settings: &[&str] = if self.long_lived { &["-Xmx1g", "-XX:-UsePerfData"] } else { &short };
        let mut arguments: Vec<String> = settings.iter().map(ToString::to_string).collect();
        let interval = self.container_check_interval.as_millis().to_string();
        let fixed = [
            ("zookeeper.forceSync", "no"),
            ("zookeeper.admin.enableServer", "false"),
            ("zookeeper.4lw.commands.whitelist", "*"),
            ("zookeeper.extendedTypesEnabled", if self.extended_types { "true" } else { "false" }),
            ("readonlymode.enabled", if self.read_only_mode { "true" } else { "false" }),
            ("znode.container.checkIntervalMs", &interval),
            ("org.slf4j.simpleLogger.defaultLogLevel", "warn"),
        ];
        arguments.extend(fixed.map(|(name, value)| format!("-D{name}={value}")));
        let super_digest = self.super_digest.iter();
        arguments.extend(super_digest.map(|digest| format!("-D{SUPER_DIGEST}={digest}")));
        if !self.sasl_users.is_empty() {
            let required = self.require_sasl.to_string();
            let sasl = [
                ("java.security.auth.login.config", jaas.display().to_string()),
                ("zookeeper.authProvider.sasl", SASL_PROVIDER.to_owned()),
                ("zookeeper.sessionRequireClientSASLAuth", required),
            ];
            arguments.extend(sasl.map(|(name, value)| format!("-D{name}={value}")));
        }
        arguments.extend(self.properties.iter().map(|(name, value)| format!("-D{name}={value}")));
        arguments
    }
}
