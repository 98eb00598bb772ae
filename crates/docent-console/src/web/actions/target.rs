use super::action::Action;
use crate::console::Inner;
use docent::inspect::{Kind, Recipe, RegistryLayout, Report, Service};
use docent::node::Stat;
use docent::{Error, ErrorKind};

/// Where contenders of a recipe are: in the recipe itself, and in the folders of Docent's and kazoo's
/// semaphores.
const CONTENDERS: [&str; 4] = ["/", "/leases/", "/locks/", "-__lock__/"];

/// Folders of the claims of a queue: Docent's and kazoo's.
pub(super) const CLAIMS: [&str; 2] = ["/claims/", "/taken/"];

/// Folder of the rules of a service in Dubbo's layout.
const RULES: &str = "/configurators/";

/// The node that an action changes.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) path: String,
    /// Status of the node, or of the instance if the node is to be created.
    pub(super) stat: Stat,
    pub(super) role: Role,
}

/// What the node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Role {
    /// The node that the page shows.
    Shown,
    /// A rule to be created, which disables the instance at this path.
    NewRule(String),
    /// A rule of a service in Dubbo's layout.
    Rule,
}

/// Why there is no such node.
#[derive(Debug, thiserror::Error)]
pub(super) enum TargetError {
    #[error("{0}")]
    Unsuitable(String),
    #[error("the node was deleted, perhaps because this was done already: nothing was changed")]
    Gone,
    #[error(transparent)]
    Client(#[from] Error),
}

/// Finds the node of an action. `node` is the name of a contender, item, instance or dead letter, which the
/// report on `path` must have.
///
/// # Errors
/// Why there is no such node.
pub(super) async fn find(
    inner: &Inner,
    action: Action,
    path: &str,
    node: &str,
) -> Result<Target, TargetError> {
    let refuse = |text: String| Err(TargetError::Unsuitable(text));
    check(inner, path, node)?;
    let Some(report) = inner.world.report(path) else {
        return Err(TargetError::Gone);
    };
    let folders: &[&str] = match action {
        Action::Leave if !is_lock(&report) => {
            return refuse(format!(
                "{path} is of kind {}, whose holders cannot be asked to leave",
                report.kind()
            ));
        }
        Action::Leave => &CONTENDERS,
        Action::Delete if report.kind() == Kind::Queue => &CLAIMS,
        Action::Delete if report.kind() == Kind::Service => &[RULES],
        Action::Delete => &CONTENDERS,
        Action::Disable | Action::Enable => &["/"],
        Action::Requeue | Action::Discard => &["/dead/"],
        Action::Rollback => return value(inner, path).await,
    };
    if !has(&report, action, node) {
        return Err(TargetError::Gone);
    }
    if let (Recipe::Service(service), Action::Disable | Action::Enable) = (&report.recipe, action)
        && service.layout == RegistryLayout::Dubbo
    {
        return rule(inner, action, path, service, node).await;
    }
    for folder in folders {
        let path = format!("{}{folder}{node}", path.trim_end_matches('/'));
        // The waiters of kazoo's semaphores are beside it.
        if !inner.is_below_root(&path) {
            continue;
        }
        if let Some(stat) = inner.client.exists(&path).await? {
            let role = if *folder == RULES { Role::Rule } else { Role::Shown };
            return Ok(Target { path, stat, role });
        }
    }
    Err(TargetError::Gone)
}

/// Finds the rule that disables an instance in Dubbo's layout, in which the name of the node is the instance.
async fn rule(
    inner: &Inner,
    action: Action,
    path: &str,
    service: &Service,
    node: &str,
) -> Result<Target, TargetError> {
    let instance = service.instances.iter().find(|one| one.node == node);
    let Some(name) = instance.and_then(|one| service.disabling_rule(one)) else {
        return Err(TargetError::Unsuitable(format!("{node} has no address that a rule could name")));
    };
    let service = path.trim_end_matches('/');
    let (rule, provider) = (format!("{service}{RULES}{name}"), format!("{service}/providers/{node}"));
    let (path, role) = match action {
        Action::Enable => (&rule, Role::Rule),
        _ => (&provider, Role::NewRule(provider.clone())),
    };
    let stat = inner.client.exists(path).await?.ok_or(TargetError::Gone)?;
    Ok(Target { path: rule, stat, role })
}

/// Checks that the path may be changed, and that the name is one.
///
/// # Errors
/// The rule that they break.
pub(super) fn check(inner: &Inner, path: &str, node: &str) -> Result<(), TargetError> {
    if node.is_empty() || node.contains('/') {
        return Err(TargetError::Unsuitable(format!("{node:?} is not the name of a node")));
    }
    if !inner.is_below_root(path) {
        return Err(TargetError::Unsuitable(format!("{path} is not below {}", inner.settings.root)));
    }
    Ok(())
}

/// Finds the current value of a configuration.
async fn value(inner: &Inner, path: &str) -> Result<Target, TargetError> {
    match inner.client.exists(path).await? {
        Some(stat) => Ok(Target { path: path.to_owned(), stat, role: Role::Shown }),
        None => Err(TargetError::Gone),
    }
}

/// Returns true for locks, also those that share their layout with an election.
fn is_lock(report: &Report) -> bool {
    const LOCKS: [Kind; 3] = [Kind::Mutex, Kind::ReadWriteLock, Kind::Semaphore];
    LOCKS.contains(&report.kind()) || report.may_be.contains(&Kind::Mutex)
}

/// Returns true if the report has what the action is about.
fn has(report: &Report, action: Action, node: &str) -> bool {
    match (&report.recipe, action) {
        (Recipe::Service(service), Action::Disable | Action::Enable) => {
            service.instances.iter().any(|one| one.node == node)
        }
        (Recipe::Service(service), Action::Delete) => service.rules.iter().any(|rule| rule == node),
        (Recipe::Queue(queue), Action::Requeue | Action::Discard) => {
            queue.dead_letters.iter().any(|letter| letter.name == node)
        }
        (Recipe::Queue(queue), Action::Delete) => queue.claims.iter().any(|claim| claim.item == node),
        (Recipe::Service(_) | Recipe::Membership(_) | Recipe::Queue(_), _) => false,
        (Recipe::DoubleBarrier(_) | Recipe::Partition(_), _) => false,
        (_, Action::Leave | Action::Delete) => report.stakes().iter().any(|stake| stake.name == node),
        _ => false,
    }
}

impl TargetError {
    /// Returns true if the node was there when the page was drawn and is not any more.
    pub(super) fn is_gone(&self) -> bool {
        match self {
            Self::Gone => true,
            Self::Unsuitable(_) => false,
            Self::Client(error) => error.kind() == ErrorKind::NoNode,
        }
    }
}
