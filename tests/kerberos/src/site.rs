use crate::Realm;
use docent_testkit::RealServer;
use docent_testkit::internals::ServerOptions;
use std::fs;
use std::path::PathBuf;

/// What errors without a ticket say.
pub const NO_TICKET: &str = "run kinit, or set KRB5CCNAME or KRB5_CLIENT_KTNAME";

/// A realm, and a real ZooKeeper in it that refuses clients without a ticket.
pub struct Site {
    // Dropped first.
    /// The ZooKeeper.
    pub server: RealServer,
    /// The realm of the server and the clients.
    pub realm: Realm,
    /// Key of the principal of the server.
    pub keytab: PathBuf,
    /// Key of the principal `alice`.
    pub alice: PathBuf,
    /// The credential cache of the clients.
    pub cache: PathBuf,
}

impl Site {
    /// Starts the KDC and the server.
    pub async fn start() -> Self {
        let realm = Realm::start().await;
        let alice = realm.add(&["alice"]);
        // The second principal exists, but the server does not use its key.
        let keytab = realm.add(&["zookeeper/localhost"]);
        realm.add(&["zookeeper/other"]);
        let jaas = realm.path("jaas.conf");
        // A server that only accepts tickets needs no KDC.
        let module = format!(
            "Server {{\n com.sun.security.auth.module.Krb5LoginModule required isInitiator=false useKeyTab=true\n  \
             keyTab=\"{}\" storeKey=true useTicketCache=false principal=\"zookeeper/localhost\";\n}};\n",
            keytab.display()
        );
        fs::write(&jaas, module).unwrap();
        let provider = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider";
        let options = ServerOptions::default()
            .property("java.security.krb5.conf", realm.path("krb5.conf").to_str().unwrap())
            .property("java.security.auth.login.config", jaas.to_str().unwrap())
            .property("zookeeper.authProvider.sasl", provider)
            .property("zookeeper.sessionRequireClientSASLAuth", "true")
            .property("zookeeper.kerberos.removeRealmFromPrincipal", "true");
        let server = RealServer::start_with(options).await.unwrap();
        let cache = realm.path("cache");
        Self { server, realm, keytab, alice, cache }
    }

    /// Gets a ticket for `alice`.
    pub fn kinit(&self, lifetime: &str) {
        self.realm.kinit("alice", &self.alice, &self.cache, lifetime);
    }

    /// Deletes all tickets.
    pub fn kdestroy(&self) {
        fs::remove_file(&self.cache).unwrap();
    }

    /// Returns the environment of a client, with more variables.
    pub fn environment(&self, more: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
        let text = |path: PathBuf| path.to_str().unwrap().to_owned();
        let connect = format!("localhost:{}", self.server.address().port());
        let mut all = vec![
            ("KRB5_CONFIG", text(self.realm.path("krb5.conf"))),
            ("KRB5CCNAME", text(self.cache.clone())),
            ("KRB5_CLIENT_KTNAME", text(self.realm.path("none"))),
            ("DOCENT_CONNECT", connect),
            ("DOCENT_SASL_GSSAPI", "true".to_owned()),
            ("DOCENT_SESSION_TIMEOUT", "60s".to_owned()),
            ("DOCENT_OPERATION_TIMEOUT", "30s".to_owned()),
        ];
        all.extend(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
        all
    }
}

/// Asserts that a text contains all parts.
///
/// # Panics
/// Panics with the text if it does not.
#[track_caller]
pub fn assert_contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
}
