use crate::error::Error;
use crate::node::namespace::Namespace;
use crate::node::{Acl, Permissions, is_own_path};
use crate::task::call_hook;
use docent_proto as proto;
use std::fmt;
use std::sync::{Arc, Once};

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
