use crate::error::Error;
use crate::node::is_own_path;
use crate::node::namespace::Namespace;
use crate::task::call_hook;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use docent_proto as proto;
use secrecy::{ExposeSecret, SecretString};
use sha1::{Digest, Sha1};
use std::borrow::Cow;
use std::fmt;
use std::ops::BitOr;
use std::sync::{Arc, Once};

/// Operations that an entry of an access control list allows.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Permissions(i32);

impl Permissions {
    /// Read data and list children.
    pub const READ: Self = Self(1);
    /// Change data.
    pub const WRITE: Self = Self(2);
    /// Create children.
    pub const CREATE: Self = Self(4);
    /// Delete children.
    pub const DELETE: Self = Self(8);
    /// Change the access control list.
    pub const ADMIN: Self = Self(16);
    /// Everything.
    pub const ALL: Self = Self(31);

    const NAMED: [(Self, &str); 5] = [
        (Self::READ, "READ"),
        (Self::WRITE, "WRITE"),
        (Self::CREATE, "CREATE"),
        (Self::DELETE, "DELETE"),
        (Self::ADMIN, "ADMIN"),
    ];

    pub(crate) const fn into_bits(self) -> i32 {
        self.0
    }

    /// Returns true if `other` is allowed entirely.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Permissions {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Prints the names, for example `READ | WRITE`.
impl fmt::Display for Permissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Self::NAMED.into_iter().filter(|(permission, _)| self.contains(*permission));
        let names: Vec<_> = named.map(|(_, name)| name).collect();
        f.write_str(if names.is_empty() { "none" } else { "" })?;
        f.write_str(&names.join(" | "))
    }
}

impl fmt::Debug for Permissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Permissions({self})")
    }
}

/// Entry of an access control list: an identity, and the operations that it allows. A list allows what any of
/// its entries allows.
///
/// Lists are not inherited: each node has its own. Any client with permission READ on a node sees the names
/// of its children, so a path must not contain a secret.
#[derive(Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Acl {
    /// Operations that the entry allows.
    pub permissions: Permissions,
    /// Scheme that checks `id`: `world`, `auth`, `digest`, `ip`, `x509`, `sasl`.
    pub scheme: String,
    /// Identity in the scheme's terms. For `digest` it is not printed, because it allows offline guessing of
    /// the password.
    pub id: String,
}

impl Acl {
    /// Creates an entry in any scheme that the servers support.
    pub fn new(permissions: Permissions, scheme: impl Into<String>, id: impl Into<String>) -> Self {
        Self { permissions, scheme: scheme.into(), id: id.into() }
    }

    /// Allows everything to every client that reaches the port. Such a client can delete a lock, and thereby
    /// cause a second holder.
    pub fn open_unsafe() -> Self {
        Self::new(Permissions::ALL, "world", "anyone")
    }

    /// Allows every client to read.
    pub fn read_all() -> Self {
        Self::new(Permissions::READ, "world", "anyone")
    }

    /// Allows everything to the creator of the node, that is, to all identities that the client has on its
    /// link at that time.
    pub fn creator_all() -> Self {
        Self::new(Permissions::ALL, "auth", "")
    }

    /// Allows `permissions` to a client with these credentials. Keeps the hash that servers store, not the
    /// password.
    pub fn digest(user: &str, password: impl Into<SecretString>, permissions: Permissions) -> Self {
        let mut hash = Sha1::new();
        for part in [user, ":", password.into().expose_secret()] {
            hash.update(part);
        }
        Self::new(permissions, "digest", format!("{user}:{}", STANDARD.encode(hash.finalize())))
    }
}

// The hash of a password is a secret, too, because it is unsalted SHA-1.
impl fmt::Debug for Acl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = match (self.scheme.as_str(), self.id.split_once(':')) {
            ("digest", Some((user, _))) => format!("{user}:***"),
            _ => self.id.clone(),
        };
        f.debug_struct("Acl")
            .field("permissions", &self.permissions)
            .field("scheme", &self.scheme)
            .field("id", &id)
            .finish()
    }
}

impl From<Acl> for proto::Acl {
    fn from(acl: Acl) -> Self {
        let permissions = proto::Permissions(acl.permissions.0);
        Self { permissions, scheme: shared(acl.scheme), id: shared(acl.id) }
    }
}

impl From<proto::Acl> for Acl {
    fn from(acl: proto::Acl) -> Self {
        let permissions = Permissions(acl.permissions.0);
        Self { permissions, scheme: acl.scheme.into_owned(), id: acl.id.into_owned() }
    }
}

/// Returns `text`, borrowed if it is one of the words that most lists use, so that copies of it cost nothing.
fn shared(text: String) -> Cow<'static, str> {
    const COMMON: [&str; 4] = ["world", "anyone", "auth", ""];
    match COMMON.into_iter().find(|common| *common == text) {
        Some(common) => Cow::Borrowed(common),
        None => Cow::Owned(text),
    }
}

type ByPath = dyn Fn(&str) -> Option<Vec<Acl>> + Send + Sync;

/// Policy that gives each new node its access control list. The list is decided only here.
#[derive(Clone, Default)]
pub(crate) struct AclPolicy {
    default: Option<Vec<Acl>>,
    /// The default list in its wire format.
    wire_default: Arc<[proto::Acl]>,
    by_path: Option<Arc<ByPath>>,
    /// The list for the client's own nodes.
    wire_own: Arc<[proto::Acl]>,
}

impl AclPolicy {
    pub(crate) fn set_default(&mut self, acl: Vec<Acl>) {
        self.default = Some(acl);
    }

    pub(crate) fn set_by_path(&mut self, by_path: impl Fn(&str) -> Option<Vec<Acl>> + Send + Sync + 'static) {
        self.by_path = Some(Arc::new(by_path));
    }

    /// Chooses the default list if none was set: only the creator if the client has an identity, otherwise
    /// every client, which is logged.
    ///
    /// # Errors
    /// `InvalidInput` if the default list cannot be valid.
    pub(crate) fn resolve(&mut self, has_credentials: bool) -> Result<(), Error> {
        let open = Acl::open_unsafe();
        let default = self.default.get_or_insert_with(|| match has_credentials {
            true => vec![Acl::creator_all()],
            false => vec![open.clone()],
        });
        if default.is_empty() {
            return Err(Error::invalid_input("connect", "an access control list needs at least one entry"));
        }
        if !has_credentials && default.iter().any(|entry| entry.scheme == "auth") {
            let detail = "an access control list for the creator needs credentials: without credentials there is no creator";
            return Err(Error::invalid_input("connect", detail));
        }
        self.wire_default = default.iter().cloned().map(Into::into).collect();
        self.wire_own = match has_credentials {
            true => Arc::new([Acl::creator_all().into()]),
            false => Arc::clone(&self.wire_default),
        };
        if default.contains(&open) {
            static LOGGED: Once = Once::new();
            // Event: Nodes are created with a list that lets every client read, change and delete them,
            // because the client has no credentials or the list was set so. Logged once per process.
            // Action: On a network that others can reach, give the client credentials or set an access
            // control list.
            // Without client: logged once per process.
            LOGGED.call_once(|| tracing::info!(target: "docent::node", "nodes are created with an open access control list"));
        }
        Ok(())
    }

    /// Returns the list for a node at the full path `full`. The user's function is called only for nodes in
    /// the namespace; nodes above it get the default list. The function is not called for the client's own
    /// nodes, which no other client needs: only the creator may access them, if the client has an identity.
    pub(crate) fn of(&self, namespace: &Namespace, full: &str) -> Arc<[proto::Acl]> {
        if is_own_path(full) {
            return Arc::clone(&self.wire_own);
        }
        let by_path = self.by_path.as_ref().filter(|_| namespace.contains(full));
        let chosen = by_path.map(|by_path| call_hook("acl_for", full, || by_path(&namespace.relative(full))));
        match chosen {
            Some(Ok(Some(acl))) => acl.into_iter().map(Into::into).collect(),
            // The list that the function would have returned is unknown. Servers refuse a node without a
            // list.
            Some(Err(_)) => Arc::new([]),
            Some(Ok(None)) | None => Arc::clone(&self.wire_default),
        }
    }
}

/// Returns the list for the shared `_docent` folder in a folder with the list `beside`. Any client that may
/// create nodes beside that folder may create nodes in it, so it does not matter which client was first. No
/// client has more permissions in the folder than beside it.
///
/// Servers hide the digests of other identities from a client that may not change the list. If something is
/// hidden, or no entry remains, `own` is added.
pub(crate) fn shared_list(beside: Vec<proto::Acl>, own: &[proto::Acl]) -> Arc<[proto::Acl]> {
    let allowed = (Permissions::READ | Permissions::CREATE | Permissions::DELETE).into_bits();
    let is_hidden = |entry: &proto::Acl| entry.scheme == "digest" && entry.id.ends_with(":x");
    let hidden = beside.iter().any(is_hidden);
    let known = beside.into_iter().filter(|entry| !is_hidden(entry)).map(|entry| {
        let permissions = proto::Permissions(entry.permissions.0 & allowed);
        proto::Acl { permissions, ..entry }
    });
    let mut list: Vec<_> = known.filter(|entry| entry.permissions.0 != 0).collect();
    let create = Permissions::CREATE.into_bits();
    if hidden || !list.iter().any(|entry| entry.permissions.0 & create != 0) {
        list.extend(own.iter().cloned());
    }
    list.into()
}

impl fmt::Debug for AclPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AclPolicy").field("default", &self.default).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_the_one_that_zookeeper_computes_and_is_not_printed() {
        let acl = Acl::digest("super", "test", Permissions::READ | Permissions::WRITE);
        assert_eq!(acl.id, "super:D/InIHSb7yEEbrWz8b9l71RjZJU=");
        assert_eq!(
            format!("{acl:?}"),
            "Acl { permissions: Permissions(READ | WRITE), scheme: \"digest\", id: \"super:***\" }"
        );
    }

    fn scheme(policy: &AclPolicy, namespace: &Namespace, full: &str) -> String {
        policy.of(namespace, full)[0].scheme.to_string()
    }

    #[test]
    fn nodes_are_the_creators_with_credentials_and_everybodys_without() {
        for (has_credentials, expected) in [(true, "auth"), (false, "world")] {
            let mut policy = AclPolicy::default();
            policy.resolve(has_credentials).unwrap();
            assert_eq!(scheme(&policy, &Namespace::default(), "/a"), expected);
        }
    }

    #[test]
    fn only_a_path_inside_the_namespace_may_have_its_own_acl() {
        let namespace = Namespace::new("/shop", "/eu").unwrap();
        let mut policy = AclPolicy::default();
        policy.set_by_path(|path| (path == "/" || path == "/shop").then(|| vec![Acl::read_all()]));
        policy.resolve(true).unwrap();
        assert_eq!(scheme(&policy, &namespace, "/shop"), "auth", "the path is above the namespace");
        assert_eq!(scheme(&policy, &namespace, "/shop/eu"), "world");
        assert_eq!(scheme(&policy, &namespace, "/shop/eu/a"), "auth");
    }

    #[test]
    fn internal_nodes_are_accessible_only_to_their_client_whatever_lists_their_paths_have() {
        let mut policy = AclPolicy::default();
        policy.set_default(vec![Acl::read_all()]);
        policy.set_by_path(|_| Some(vec![Acl::open_unsafe()]));
        policy.resolve(true).unwrap();
        for own in ["/_docent/1f/2e", "/a/_docent-1f/2e"] {
            assert_eq!(scheme(&policy, &Namespace::default(), own), "auth", "{own}");
        }
        assert_eq!(scheme(&policy, &Namespace::default(), "/a/b"), "world");
    }

    #[test]
    fn the_shared_folder_is_open_to_clients_that_may_create_next_to_it_and_no_others() {
        let entry = |permissions, scheme, id| proto::Acl::from(Acl::new(permissions, scheme, id));
        let own = [entry(Permissions::ALL, "auth", "")];
        let allowed = Permissions::READ | Permissions::CREATE | Permissions::DELETE;
        let open = shared_list(vec![entry(Permissions::ALL, "world", "anyone")], &own);
        assert_eq!(*open, [entry(allowed, "world", "anyone")]);
        let read = entry(Permissions::READ, "world", "anyone");
        let closed = shared_list(vec![read.clone(), entry(Permissions::ALL, "sasl", "a")], &own);
        assert_eq!(*closed, [read.clone(), entry(allowed, "sasl", "a")]);
        // Hidden from this client, which may create nodes there nevertheless.
        let hidden = shared_list(vec![read.clone(), entry(Permissions::ALL, "digest", "b:x")], &own);
        assert_eq!(*hidden, [read, own[0].clone()]);
        assert_eq!(*shared_list(vec![entry(Permissions::WRITE, "world", "anyone")], &own), own);
    }

    #[test]
    fn a_function_that_panics_gives_a_list_that_servers_refuse() {
        let mut policy = AclPolicy::default();
        policy.set_by_path(|_| panic!("planted"));
        policy.resolve(true).unwrap();
        assert!(policy.of(&Namespace::default(), "/a").is_empty());
    }

    #[test]
    fn a_list_that_no_client_can_match_is_refused() {
        for (acl, rule) in [(vec![], "at least one entry"), (vec![Acl::creator_all()], "needs credentials")] {
            let mut policy = AclPolicy::default();
            policy.set_default(acl);
            let error = policy.resolve(false).unwrap_err();
            assert!(error.to_string().contains(rule), "{error}");
        }
    }
}
