use crate::error::Error;
use crate::node::Acl;
use crate::node::namespace::Namespace;
use crate::task::call_hook;
use docent_proto as proto;
use std::fmt;
use std::sync::{Arc, Once};

type ByPath = dyn Fn(&str) -> Option<Vec<Acl>> + Send + Sync;

/// Policy that gives each new node its access control list. The only place that decides it.
#[derive(Clone, Default)]
pub(crate) struct AclPolicy {
    default: Option<Vec<Acl>>,
    /// The default list in its wire form.
    wire_default: Arc<[proto::Acl]>,
    by_path: Option<Arc<ByPath>>,
}

impl AclPolicy {
    pub(crate) fn set_default(&mut self, acl: Vec<Acl>) {
        self.default = Some(acl);
    }

    pub(crate) fn set_by_path(&mut self, by_path: impl Fn(&str) -> Option<Vec<Acl>> + Send + Sync + 'static) {
        self.by_path = Some(Arc::new(by_path));
    }

    /// Chooses the default if there is none: the creator alone when the client can say who it is, else
    /// everybody, and says so.
    ///
    /// # Errors
    /// `InvalidInput` when the default cannot be right.
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
            let detail = "an access control list for the creator needs credentials: without them nobody is the creator";
            return Err(Error::invalid_input("connect", detail));
        }
        self.wire_default = default.iter().cloned().map(Into::into).collect();
        if default.contains(&open) {
            static SAID: Once = Once::new();
            SAID.call_once(|| tracing::info!("nodes are created open to everybody who reaches the servers"));
        }
        Ok(())
    }

    /// The list for a node at the full path `full`. The user's function is asked for nodes in the namespace
    /// only: nodes above it get the default.
    pub(crate) fn of(&self, namespace: &Namespace, full: &str) -> Arc<[proto::Acl]> {
        let by_path = self.by_path.as_ref().filter(|_| namespace.contains(full));
        let chosen = by_path.map(|by_path| call_hook("acl_for", full, || by_path(&namespace.relative(full))));
        match chosen {
            Some(Ok(Some(acl))) => acl.into_iter().map(Into::into).collect(),
            // Nobody knows whom it would have let in. Servers refuse a node without a list.
            Some(Err(_)) => Arc::new([]),
            Some(Ok(None)) | None => Arc::clone(&self.wire_default),
        }
    }
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
    fn a_path_may_have_a_list_of_its_own_inside_of_the_namespace_only() {
        let namespace = Namespace::new("/shop", "/eu").unwrap();
        let mut policy = AclPolicy::default();
        policy.set_by_path(|path| (path == "/" || path == "/shop").then(|| vec![Acl::read_all()]));
        policy.resolve(true).unwrap();
        assert_eq!(scheme(&policy, &namespace, "/shop"), "auth", "it is above the namespace");
        assert_eq!(scheme(&policy, &namespace, "/shop/eu"), "world");
        assert_eq!(scheme(&policy, &namespace, "/shop/eu/a"), "auth");
    }

    #[test]
    fn a_function_that_panics_gives_a_list_that_servers_refuse() {
        let mut policy = AclPolicy::default();
        policy.set_by_path(|_| panic!("planted"));
        policy.resolve(true).unwrap();
        assert!(policy.of(&Namespace::default(), "/a").is_empty());
    }

    #[test]
    fn a_list_that_nobody_can_match_is_refused() {
        for (acl, rule) in [(vec![], "at least one entry"), (vec![Acl::creator_all()], "needs credentials")] {
            let mut policy = AclPolicy::default();
            policy.set_default(acl);
            let error = policy.resolve(false).unwrap_err();
            assert!(error.to_string().contains(rule), "{error}");
        }
    }
}
