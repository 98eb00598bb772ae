use crate::app::App;
use crate::exit::Failure;
use crate::verbs::inspect::report_gaps;
use bytes::Bytes;
use docent::config::Revision;
use docent::inspect::{Inspector, Kind, Limits, Report};
use docent::recipe::is_own_name;
use docent::{Client, ErrorKind};
use docent_config::internals::{HISTORY, RUNNING};
use futures_util::{StreamExt, TryStreamExt, stream};
use std::collections::{BTreeMap, HashSet};

/// Maximum number of concurrent reads.
const IN_FLIGHT: usize = 32;

/// ZooKeeper's own folder.
const SYSTEM: &str = "/zookeeper";

/// A value at the servers.
#[derive(Debug, Clone)]
pub(super) struct Value {
    pub(super) data: Bytes,
    pub(super) revision: Revision,
}

/// What a path and the paths below it hold.
struct Read {
    value: Option<Value>,
    /// Paths of the children that may have values.
    below: Vec<String>,
    is_refused: bool,
}

/// Returns the values at `root` and below it, by path. A node with data is a value, also if it has children;
/// a node without data is one only if it has no children. Nodes of other recipes, ephemeral nodes, histories
/// and reports of readers are skipped. Nodes that may not be read are reported on standard error.
///
/// # Errors
/// `NoPermission` if `root` may not be read; `Usage`, `Unreachable`.
pub(super) async fn below(
    app: &App,
    client: &Client,
    root: &str,
) -> Result<BTreeMap<String, Value>, Failure> {
    let limits = Limits::default().nodes(usize::MAX).depth(usize::MAX);
    let survey = Inspector::builder(client).limits(limits).read_only().build().walk(root).await?;
    crate::verbs::inspect::readable(root, &survey.refused)?;
    let others: HashSet<_> = survey.found.iter().filter(|one| !is_value(one)).map(|one| &*one.path).collect();
    let (mut values, mut refused) = (BTreeMap::new(), survey.refused.clone());
    let mut level = vec![root.to_owned()];
    while !level.is_empty() {
        level.retain(|path| !others.contains(&**path));
        let reads = stream::iter(level)
            .map(|path| async move { Ok::<_, Failure>((read(client, &path).await?, path)) });
        let reads: Vec<_> = reads.buffered(IN_FLIGHT).try_collect().await?;
        level = Vec::new();
        for (read, path) in reads {
            level.extend(read.below);
            if read.is_refused && !refused.iter().any(|known| known.path == path) {
                app.output.remark(format!("permission denied at {path}"));
            }
            values.extend(read.value.map(|value| (path, value)));
        }
    }
    refused.retain(|refusal| !others.contains(&*refusal.path));
    report_gaps(app, &refused, survey.left_out);
    Ok(values)
}

/// Returns true if the node at the path of a report is a value, or may be one.
fn is_value(report: &Report) -> bool {
    let is_value = |kind: &Kind| matches!(kind, Kind::Config | Kind::Value | Kind::Counter);
    is_value(&report.kind()) || report.may_be.iter().any(is_value)
}

async fn read(client: &Client, path: &str) -> Result<Read, Failure> {
    let none = |is_refused| Read { value: None, below: Vec::new(), is_refused };
    let (node, children) = futures_util::join!(client.get(path), client.children(path));
    let (node, children) = match (node, children) {
        (Ok(node), Ok(children)) => (node, children),
        (Err(error), _) | (_, Err(error)) => match error.kind() {
            ErrorKind::NoNode => return Ok(none(false)),
            ErrorKind::NoAuth => return Ok(none(true)),
            _ => return Err(error.into()),
        },
    };
    let is_folder = node.data.is_empty() && (!children.names.is_empty() || path == "/");
    let is_value = !is_folder && node.stat.owner.is_none();
    let revision = Revision::from(&node.stat);
    let is_below = |name: &&String| !is_own_name(name) && *name != HISTORY && *name != RUNNING;
    let names = children.names.iter().filter(is_below);
    let below = names.map(|name| format!("{}/{name}", path.trim_end_matches('/')));
    Ok(Read {
        value: is_value.then_some(Value { data: node.data, revision }),
        below: below.filter(|path| path != SYSTEM).collect(),
        is_refused: false,
    })
}
