use super::rule::{ANY, Origin};
use super::sources::{RuleEvent, RulePart, RuleSources, is_of_service, stem_of};
use super::{Rule, RuleSet, ServiceKey, document};
use crate::layout::decode;
use crate::service::Unreadable;
use docent_core::{Node, TreeCache, TreeEvent};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rules of a service as far as they were read.
#[derive(Debug)]
pub(crate) struct FollowedRules {
    sources: RuleSources,
    service: String,
    /// Label of the client.
    client: String,
    folder: PartState,
    documents: PartState,
    /// The last valid rules of each node that contains rules.
    valid: BTreeMap<Arc<str>, Vec<Rule>>,
    /// Nodes with invalid rules and nodes that cannot be read, by their paths.
    rejected: BTreeMap<Arc<str>, Unreadable>,
    set: RuleSet,
}

#[derive(Debug, Default)]
struct PartState {
    /// True once the part was read, or the servers refused it.
    is_known: bool,
    /// True from a lost connection until the part was read again.
    is_stale: bool,
}

impl PartState {
    fn apply(&mut self, event: &Result<TreeEvent, docent_core::Error>) {
        match event {
            // Refused rules stay as they were last read.
            Err(_) | Ok(TreeEvent::Ready) => *self = Self { is_known: true, is_stale: false },
            Ok(TreeEvent::Gap) => self.is_stale = true,
            _ => {}
        }
    }
}

impl FollowedRules {
    pub(crate) fn new(sources: &RuleSources, client: &str, service: &str) -> Self {
        Self {
            sources: sources.clone(),
            service: service.to_owned(),
            client: client.to_owned(),
            folder: PartState::default(),
            documents: PartState::default(),
            valid: BTreeMap::new(),
            rejected: BTreeMap::new(),
            set: RuleSet::default(),
        }
    }

    /// Returns true once all rules were read, or the servers refused them.
    pub(crate) fn are_known(&self) -> bool {
        self.folder.is_known && self.documents.is_known
    }

    /// Returns true if the rules may be out of date.
    pub(crate) fn are_stale(&self) -> bool {
        self.folder.is_stale || self.documents.is_stale
    }

    /// Returns the nodes whose rules are not applied, by their paths.
    pub(crate) fn rejected(&self) -> impl Iterator<Item = (&Arc<str>, &Unreadable)> {
        self.rejected.iter()
    }

    /// Returns the rules that apply now.
    pub(crate) fn set(&self) -> &RuleSet {
        &self.set
    }

    /// Applies events. Returns the rules that applied before.
    pub(crate) fn apply(&mut self, events: &[RuleEvent]) -> RuleSet {
        for (part, event) in events {
            match part {
                RulePart::Folder => self.folder.apply(event),
                RulePart::Documents => self.documents.apply(event),
            }
        }
        // Before a part is known, its cache may have read only some of the rules.
        if !self.are_known() {
            return self.set.clone();
        }
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
        let nodes = nodes(cache);
        Rule::of_names(nodes.iter().map(|(path, _)| (name_of(path), path)), |path, reason| {
            reject(rejected, path, reason);
        })
    }

    /// Reads the rules in the nodes' data. The last valid rules of a node remain if its data is invalid.
    fn of_documents(&mut self, rejected: &mut BTreeMap<Arc<str>, Unreadable>) -> Vec<Rule> {
        let cache = self.sources.documents.clone();
        let mut before = std::mem::take(&mut self.valid);
        refused(&cache, rejected);
        for (path, node) in &nodes(&cache) {
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

/// Returns the nodes below that of a cache, with their names, in the order of paths.
fn nodes(cache: &TreeCache) -> Vec<(Arc<str>, Arc<Node>)> {
    let start = format!("{}/", cache.path());
    let snapshot = cache.current();
    let below = snapshot.iter().filter(|(path, _)| path.starts_with(&start));
    below.map(|(path, node)| (Arc::clone(path), Arc::clone(node))).collect()
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
