/// What a build without the mechanism lacks.
#[cfg(not(docent_gssapi))]
pub(super) const NEEDS: &str = "SASL with GSSAPI must be built with RUSTFLAGS=\"--cfg docent_gssapi\", which needs MIT Kerberos \
     (libkrb5-dev) and clang";

/// Settings of a Kerberos identity, for [`Sasl::gssapi`](super::Sasl::gssapi).
///
/// The client's own principal is the default one of the system's Kerberos library. The ticket comes from the
/// credential cache (`KRB5CCNAME`). With a client keytab (`KRB5_CLIENT_KTNAME`), the library requests a
/// ticket and renews it.
///
/// # The server's principal
/// `service` and the host as the connect string names it, such as `zookeeper/zk1.example.org`. The Kerberos
/// library replaces the host by its canonical name, as `dns_canonicalize_hostname` and `rdns` in `krb5.conf`
/// say; by default it asks DNS, forwards and backwards. kazoo does the same. ZooKeeper's Java client asks
/// DNS itself unless `zookeeper.sasl.client.canonicalize.hostname` is false. Set
/// [`server_principal`](Self::server_principal) if the names in DNS are not those of the principals.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gssapi {
    /// First part of the servers' principals, `zookeeper.sasl.client.username` in Java. Default: `zookeeper`.
    pub service: String,
    /// One principal for all servers, such as `zookeeper/zk.example.org@EXAMPLE.ORG`, as
    /// `zookeeper.server.principal` in Java. Without a realm, the principal is in the default realm.
    /// Default: none.
    pub server_principal: Option<String>,
}

impl Gssapi {
    /// Creates the default settings: servers with the principals `zookeeper/<host>`.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`service`](Self::service).
    #[must_use]
    pub fn service(mut self, service: impl Into<String>) -> Self {
        self.service = service.into();
        self
    }

    /// Sets [`server_principal`](Self::server_principal).
    #[must_use]
    pub fn server_principal(mut self, principal: impl Into<String>) -> Self {
        self.server_principal = Some(principal.into());
        self
    }

    /// Returns the rule that these settings break, if they break one.
    pub(super) fn broken_rule(&self) -> Option<&'static str> {
        #[cfg(not(docent_gssapi))]
        return Some(NEEDS);
        #[cfg(docent_gssapi)]
        match () {
            () if self.service.is_empty() || self.service.contains(['/', '@']) => {
                Some("SASL service must have at least one character, and neither '/' nor '@'")
            }
            () if self.server_principal.as_deref() == Some("") => {
                Some("SASL server principal must have at least one character")
            }
            () => None,
        }
    }
}

impl Default for Gssapi {
    fn default() -> Self {
        Self { service: "zookeeper".to_owned(), server_principal: None }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Client, Gssapi, Sasl};

    fn refused(settings: Gssapi) -> Option<String> {
        let built = Client::builder("zk1").sasl(Sasl::gssapi(settings)).build();
        built.err().map(|error| error.to_string())
    }

    #[cfg(not(docent_gssapi))]
    #[tokio::test]
    async fn a_build_without_the_mechanism_names_what_to_build() {
        let refused = refused(Gssapi::new()).unwrap();
        assert!(refused.contains("RUSTFLAGS=\"--cfg docent_gssapi\""), "{refused}");
    }

    #[cfg(docent_gssapi)]
    #[tokio::test]
    async fn names_of_servers_that_no_principal_has_are_refused() {
        for (settings, text) in [
            (Gssapi::new().service(""), "SASL service must have"),
            (Gssapi::new().service("zookeeper/host"), "SASL service must have"),
            (Gssapi::new().service("zookeeper@host"), "SASL service must have"),
            (Gssapi::new().server_principal(""), "SASL server principal must have"),
        ] {
            let refused = refused(settings).unwrap();
            assert!(refused.contains(text), "{refused}");
        }
        assert_eq!(refused(Gssapi::new().server_principal("zookeeper/zk@EXAMPLE.ORG")), None);
    }
}
