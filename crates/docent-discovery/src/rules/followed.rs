use super::rule::{ANY, Origin};
use super::sources::{RuleSources, is_of_service, stem_of};
use super::{Rule, RuleSet, ServiceKey, document};
use crate::layout::decode;
use crate::service::Unreadable;
use docent_core::TreeCache;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rules of a service as far as they were read.
#[derive(Debug)]
pub(crate) struct FollowedRules {
    sources: RuleSources,
    service: String,
    /// Label of the client.
    client: String,
    /// True once all rules were read, or the servers refused them.
    pub(crate) are_known: bool,
    /// True if the applied rules may be out of date.
    pub(crate) are_stale: bool,
    /// The last valid rules of each node that contains rules.
    valid: BTreeMap<Arc<str>, Vec<Rule>>,
    /// Nodes with invalid rules and nodes that cannot be read, by their paths.
    pub(crate) rejected: BTreeMap<Arc<str>, Unreadable>,
    /// Rules that apply now.
    pub(crate) set: RuleSet,
}

impl FollowedRules {
    pub(crate) fn new(sources: &RuleSources, client: &str, service: &str) -> Self {
        Self {
            sources: sources.clone(),
            service: service.to_owned(),
            client: client.to_owned(),
            are_known: false,
            are_stale: true,
            valid: BTreeMap::new(),
            rejected: BTreeMap::new(),
            set: RuleSet::default(),
        }
    }

    /// Applies the rules that the caches have now, after a [change](RuleSources::changes). Returns the rules
    /// that applied before.
    pub(crate) fn refresh(&mut self) -> RuleSet {
        self.are_known = true;
        // Before the content, which is then at least as new.
        self.are_stale = self.sources.stale_for().is_some();
        let mut rejected = BTreeMap::new();
        let mut rules = self.of_folder(&mut rejected);
        rules.extend(self.of_documents(&mut rejected));
        self.report(&rejected);
        self.rejected = rejected;
        std::mem::replace(&mut self.set, RuleSet::new(rules))
    }

    /// Reads the rules in the names of the folder's nodes.
    fn of_folder(&self, rejected: &mut BTreeMap<Arc<str>, Unreadable>) -> Vec<Rule> {
        let cache = &self.sources.folder;
        refused(cache, rejected);
        let snapshot = cache.current();
        let names = snapshot.descendants(cache.path()).map(|(path, _)| (name_of(path), path));
        Rule::of_names(names, |path, reason| reject(rejected, path, reason))
    }

    /// Reads the rules in the nodes' data. The last valid rules of a node remain if its data is invalid.
    fn of_documents(&mut self, rejected: &mut BTreeMap<Arc<str>, Unreadable>) -> Vec<Rule> {
        let cache = self.sources.documents.clone();
        let mut before = std::mem::take(&mut self.valid);
        refused(&cache, rejected);
        for (path, node) in cache.current().descendants(cache.path()) {
            let Some(stem) = stem_of(name_of(path)) else { continue };
            match document::parse(&node.data).and_then(|rules| of_node(stem, &self.service, rules)) {
                Ok(rules) => drop(self.valid.insert(Arc::clone(path), rules)),
                Err(reason) => {
                    reject(rejected, path, reason);
                    self.valid.extend(before.remove_entry(path));
                }
            }
        }
        self.valid.values().flatten().cloned().collect()
    }

    /// Logs each rule that is rejected now and was not before.
    fn report(&self, rejected: &BTreeMap<Arc<str>, Unreadable>) {
        for (path, Unreadable { reason, .. }) in rejected {
            if self.rejected.get(path).is_some_and(|known| known.reason == *reason) {
                continue;
            }
            let rule = decode(name_of(path));
            // Event: A rule of Dubbo for a followed service is invalid or cannot be read. The last valid
            // content of a node with rules stays in use; an invalid URL has no effect.
            // Action: Correct or delete the rule, for example in Dubbo Admin, or grant the client READ.
            tracing::warn!(target: "docent::discovery", client = %self.client, service = %self.service, %path, rule, %reason, "cannot apply a rule of a service; ignoring it");
        }
    }
}

/// Returns the rules of the node for `stem`, limited to its service or application.
///
/// # Errors
/// If a rule names another one: Dubbo does not apply it.
fn of_node(stem: &str, service: &str, rules: Vec<Rule>) -> Result<Vec<Rule>, String> {
    let key = ServiceKey::parse(stem);
    let is_of_service = is_of_service(stem) || key.interface == service;
    let limited = |rule: Rule| match is_of_service {
        true if rule.service.as_ref().is_some_and(|other| *other != key) => {
            Err("key must name the service of the node".to_owned())
        }
        true => Ok(Rule { origin: Origin::Service, service: Some(key.clone()), ..rule }),
        false => match rule.application.as_deref() {
            Some(application) if application != ANY && application != stem => {
                Err("key must name the application of the node".to_owned())
            }
            // Whatever its content says, Dubbo applies a node of the application before those of services.
            _ => Ok(Rule { origin: Origin::Application, application: Some(stem.to_owned()), ..rule }),
        },
    };
    rules.into_iter().map(limited).collect()
}

/// Returns the name of the node at a path.
fn name_of(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// Records what a cache cannot read.
fn refused(cache: &TreeCache, rejected: &mut BTreeMap<Arc<str>, Unreadable>) {
    if let Some(error) = cache.last_error() {
        reject(rejected, &cache.path().into(), error.to_string());
    }
    for (path, error) in cache.current().unreadable() {
        reject(rejected, path, error.to_string());
    }
}

fn reject(rejected: &mut BTreeMap<Arc<str>, Unreadable>, path: &Arc<str>, reason: String) {
    rejected.insert(Arc::clone(path), Unreadable { id: path.to_string(), reason });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_ranks_by_its_node_and_not_by_its_content() {
        const SERVICE: &str = "com.shop.Orders";
        let rules = document::parse(br#"["override://0.0.0.0/com.shop.Orders?weight=7"]"#).unwrap();
        let origins = |stem: &str| -> Vec<_> {
            of_node(stem, SERVICE, rules.clone()).unwrap().iter().map(|rule| rule.origin).collect()
        };
        assert_eq!(origins("shop"), [Origin::Application]);
        assert_eq!(origins("com.shop.Orders::"), [Origin::Service]);
        assert_eq!(origins(SERVICE), [Origin::Service]);
    }
}
