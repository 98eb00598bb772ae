use super::{Data, Folder, View};
use crate::report::Since;
use docent_core::Stat;

/// Children that are looked at to learn of which kind all of them are.
const SAMPLE: usize = 4;

/// Node that is being recognised, with its children.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) view: &'a View<'a>,
    pub(crate) path: &'a str,
    /// Names of the children, in their order.
    pub(crate) names: &'a [String],
    pub(crate) stat: &'a Stat,
}

impl<'a> Place<'a> {
    pub(crate) fn new(view: &'a View<'a>, path: &'a str, folder: &'a Folder) -> Self {
        Self { view, path, names: &folder.names, stat: &folder.stat }
    }

    /// Path of a child.
    pub(crate) fn child(&self, name: &str) -> String {
        join(self.path, name)
    }

    /// Data of a child.
    pub(crate) fn data(&self, name: &str) -> Option<&'a Data> {
        self.view.data(&self.child(name))
    }

    /// Children of a child.
    pub(crate) fn folder(&self, name: &str) -> Option<&'a Folder> {
        self.view.folder(&self.child(name))
    }

    /// Data of the node itself; not read when there is none.
    pub(crate) fn own_data(&self) -> Option<&'a [u8]> {
        if self.stat.data_length == 0 {
            return Some(&[]);
        }
        self.view.data(self.path)?.bytes.as_deref()
    }

    /// Name of the node itself; empty for the root.
    pub(crate) fn name(&self) -> &'a str {
        self.path.rsplit_once('/').map_or("", |(_, name)| name)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.names.iter().any(|child| child == name)
    }

    /// True when there are children, and all of them are among `known`.
    pub(crate) fn has_only(&self, known: &[&str]) -> bool {
        !self.names.is_empty() && self.names.iter().all(|name| known.contains(&name.as_str()))
    }

    /// The first few children.
    pub(crate) fn sample(&self) -> impl Iterator<Item = &'a str> {
        self.names.iter().take(SAMPLE).map(String::as_str)
    }

    /// True when the child was listed, and was not there any more when it was read.
    pub(crate) fn is_gone(&self, name: &str) -> bool {
        self.view.is_gone(&self.child(name))
    }

    pub(crate) fn modified(&self) -> Since {
        self.view.since(self.stat.modified)
    }
}

/// True when some of the children that were asked show a mark, and none lacks it. Those that may not be read,
/// or left meanwhile, say nothing.
pub(crate) fn agree(marks: &[Option<bool>]) -> bool {
    let mut said = marks.iter().flatten();
    said.clone().next().is_some() && said.all(|mark| *mark)
}

/// Path of the child `name` of the node at `path`.
pub(crate) fn join(path: &str, name: &str) -> String {
    if path == "/" { format!("/{name}") } else { format!("{path}/{name}") }
}
