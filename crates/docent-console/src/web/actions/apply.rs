use super::action::Action;
use super::target::{CLAIMS, Role, Target, TargetError};
use crate::console::Inner;
use crate::web::api::BUSY;
use bytes::Bytes;
use docent::config::{Config, PublishError, Raw, SubscribeError};
use docent::node::Transaction;
use docent::queue::Queue;
use docent::recipe::ensure_node;
use docent::{CreateMode, Error, ErrorKind};
use serde_json::value::{RawValue, to_raw_value};
use std::collections::BTreeMap;
use std::time::Duration;

/// Data by which Curator, and Docent after it, asks the owner of a node to leave.
const REVOKE: &[u8] = b"__REVOKE__";

/// Longest time for a write that must not be applied late.
const PATIENCE: Duration = Duration::from_secs(2);

/// Why an action was not applied.
#[derive(Debug, thiserror::Error)]
pub(super) enum ApplyError {
    #[error("the node was changed or replaced after the question was drawn: nothing was changed")]
    Changed,
    #[error("{BUSY}")]
    Busy,
    #[error("{0}")]
    Unsuitable(String),
    #[error("the reply was lost, so it is not known whether the change was applied: look again")]
    Unknown,
    #[error(transparent)]
    Client(Error),
    #[error(transparent)]
    Target(#[from] TargetError),
}

impl From<Error> for ApplyError {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::NoNode | ErrorKind::BadVersion | ErrorKind::NodeExists => Self::Changed,
            _ if error.may_have_applied() => Self::Unknown,
            _ => Self::Client(error),
        }
    }
}

impl From<PublishError> for ApplyError {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::Conflict => Self::Changed,
            PublishError::Core(error) => error.into(),
            other => Self::Unsuitable(other.to_string()),
        }
    }
}

/// Changes the target, which is as the person saw it.
///
/// Each write names the version of the node, so it fails if the node is changed meanwhile, and the servers
/// apply it at most once.
///
/// # Errors
/// Why nothing was changed, or that it is not known.
pub(super) async fn apply(
    inner: &Inner,
    action: Action,
    path: &str,
    node: &str,
    target: &Target,
    proofs: &[String],
) -> Result<(), ApplyError> {
    let client = &inner.client;
    let transaction = match action {
        Action::Leave | Action::Delete => {
            let write = |transaction: Transaction| match action {
                Action::Leave => transaction.set(&target.path, REVOKE, target.stat.version),
                _ => transaction.delete(&target.path, target.stat.version),
            };
            let is_claim = CLAIMS.iter().any(|folder| target.path.ends_with(&format!("{folder}{node}")));
            if proofs.is_empty() && (is_claim || !is_numbered(node)) {
                return at_once(inner, write).await;
            }
            // Without its proof, the servers refuse what a stalled consumer may still write.
            proofs.iter().fold(write(client.transaction()), |delete, proof| delete.delete(proof, None))
        }
        Action::Disable | Action::Enable => {
            match &target.role {
                Role::Shown => {}
                Role::NewRule(provider) => return disable(inner, provider, target).await,
                Role::Rule => return delete(inner, target).await,
            }
            let found = client.get(&target.path).await?;
            if found.stat.mzxid != target.stat.mzxid {
                return Err(ApplyError::Changed);
            }
            let data = with_enabled(&found.data, action == Action::Enable).ok_or_else(|| {
                ApplyError::Unsuitable("the data of the instance is not a JSON object".to_owned())
            })?;
            // An instance that registers again has version 0, too.
            return at_once(inner, |transaction| transaction.set(&target.path, data, target.stat.version))
                .await;
        }
        Action::Discard => return delete(inner, target).await,
        Action::Requeue => return requeue(inner, path, node).await,
        Action::Rollback => return roll_back(inner, path, node, target).await,
    };
    transaction.commit_exactly().await?;
    Ok(())
}

async fn delete(inner: &Inner, target: &Target) -> Result<(), ApplyError> {
    inner.client.transaction().delete(&target.path, target.stat.version).commit_exactly().await?;
    Ok(())
}

/// Creates the rule that disables the instance at `provider`, if that instance is still there.
async fn disable(inner: &Inner, provider: &str, rule: &Target) -> Result<(), ApplyError> {
    let (folder, _) = rule.path.rsplit_once('/').unwrap_or_default();
    ensure_node(&inner.client, folder, CreateMode::Persistent).await?;
    let transaction = inner.client.transaction().check(provider, rule.stat.version);
    transaction.create(&rule.path, "", CreateMode::Persistent).commit_exactly().await?;
    Ok(())
}

/// Returns true for the name of a sequential node, which no later node beside it has. Others are used again,
/// such as by the permits of one of kazoo's semaphores. A claim has the name of its item.
fn is_numbered(node: &str) -> bool {
    let name = node.trim_end_matches(|char: char| char.is_ascii_digit());
    node.len() - name.len() >= 10 && name.ends_with(['-', '_'])
}

/// Applies a write that would also match a later node of the same name. So it does not wait long for a
/// connection, and is not repeated.
async fn at_once(inner: &Inner, write: impl FnOnce(Transaction) -> Transaction) -> Result<(), ApplyError> {
    let client = inner.client.with_operation_timeout(PATIENCE);
    write(client.transaction()).commit().await?;
    Ok(())
}

/// Fields of a JSON object, byte for byte.
type Fields = BTreeMap<String, Box<RawValue>>;

/// Returns the data of an instance in Curator's layout with another `enabled`, and with the same status in
/// the metadata of Spring Cloud, whose callers read only that. All other fields stay byte for byte.
fn with_enabled(data: &[u8], enabled: bool) -> Option<Bytes> {
    let mut fields: Fields = serde_json::from_slice(data).ok()?;
    fields.insert("enabled".to_owned(), to_raw_value(&enabled).ok()?);
    if let Some(payload) = fields.get("payload").and_then(|payload| with_status(payload, enabled)) {
        fields.insert("payload".to_owned(), payload);
    }
    serde_json::to_vec(&fields).ok().map(Bytes::from)
}

/// Returns the payload of an instance with another status, if it is that of Spring Cloud.
fn with_status(payload: &RawValue, enabled: bool) -> Option<Box<RawValue>> {
    const STATUS: &str = "instance_status";
    let mut payload: Fields = serde_json::from_str(payload.get()).ok()?;
    let mut metadata: Fields = serde_json::from_str(payload.get("metadata")?.get()).ok()?;
    let (before, status) = if enabled { ("OUT_OF_SERVICE", "UP") } else { ("UP", "OUT_OF_SERVICE") };
    // Another status, such as `DOWN`, is the service's own.
    metadata
        .get(STATUS)
        .filter(|found| serde_json::from_str::<&str>(found.get()).is_ok_and(|it| it == before))?;
    metadata.insert(STATUS.to_owned(), to_raw_value(status).ok()?);
    payload.insert("metadata".to_owned(), to_raw_value(&metadata).ok()?);
    to_raw_value(&payload).ok()
}

async fn requeue(inner: &Inner, path: &str, name: &str) -> Result<(), ApplyError> {
    let dead = Queue::<Bytes>::builder_with(&inner.client, path, Raw).build()?.dead_letters();
    let letter = dead.get(name).await?.ok_or(ApplyError::Changed)?;
    Ok(dead.requeue(&letter).await?)
}

async fn roll_back(inner: &Inner, path: &str, mzxid: &str, target: &Target) -> Result<(), ApplyError> {
    let config = Config::<Bytes>::builder_with(&inner.client, path, Raw).keep_longer_history().build()?;
    let seen = match config.get().await {
        Ok(present) => present.and_then(|present| present.revision()),
        Err(SubscribeError::Core(error)) => return Err(error.into()),
        Err(error) => return Err(ApplyError::Unsuitable(error.to_string())),
    };
    let seen = seen.filter(|seen| seen.mzxid == target.stat.mzxid).ok_or(ApplyError::Changed)?;
    let history = config.history().await?;
    let to = history.iter().map(|entry| entry.revision).find(|to| to.mzxid.to_string() == mzxid);
    let to =
        to.ok_or_else(|| ApplyError::Unsuitable("the history does not have that value any more".to_owned()))?;
    config.rollback_if(&to, &seen).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_sequential_nodes_are_numbered() {
        for name in ["_c_3a7f-lock-0000000012", "3a7f__lock__0000000000", "x-2147483648", "x--0000000001"] {
            assert!(is_numbered(name), "{name}");
        }
        for name in ["3a7f-0000000001-x", "3a7f0123456789", "x-000000001", "a", ""] {
            assert!(!is_numbered(name), "{name}");
        }
    }

    #[test]
    fn only_enabled_changes_in_the_data_of_an_instance() {
        let data = br#"{"id":"a","weight":1e400,"big":12345678901234567890123,"payload":{"b": 1, "a":[ ]},"enabled":true}"#;
        let disabled = with_enabled(data, false).unwrap();
        let text = std::str::from_utf8(&disabled).unwrap();
        for field in [
            r#""id":"a""#,
            r#""weight":1e400"#,
            r#""big":12345678901234567890123"#,
            r#""payload":{"b": 1, "a":[ ]}"#,
            r#""enabled":false"#,
        ] {
            assert!(text.contains(field), "{field} in {text}");
        }
        assert_eq!(with_enabled(b"[]", false), None);
    }

    #[test]
    fn the_status_of_spring_cloud_changes_with_enabled() {
        let data = |enabled: bool, status: &str| {
            format!(
                r#"{{"enabled":{enabled},"id":"a","payload":{{"@class":"a.ZookeeperInstance","metadata":{{"instance_status":{status},"zone":"z"}}}}}}"#
            )
        };
        let (up, down) = (data(true, r#""UP""#), data(false, r#""OUT_OF_SERVICE""#));
        assert_eq!(with_enabled(up.as_bytes(), false).unwrap(), down);
        assert_eq!(with_enabled(down.as_bytes(), true).unwrap(), up);
        // Another status stays.
        for other in ["3", r#""DOWN""#] {
            assert_eq!(with_enabled(data(true, other).as_bytes(), false).unwrap(), data(false, other));
        }
    }
}
