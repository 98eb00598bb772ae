use crate::Instance;
use crate::balance::Candidate;
use docent_core::recipe::SharedMap;
use std::fmt;
use std::sync::Arc;

/// Node below a service that cannot be shown as an instance, with the reason: invalid data, or a hook that
/// panicked. Also a [rule](crate::RegistryLayout::Dubbo) that is invalid or cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("cannot read node {id:?}: {reason}")]
#[non_exhaustive]
pub struct Unreadable {
    /// Name of the node; of a rule, the path of its node.
    pub id: String,
    /// Reason, without any of the data itself.
    pub reason: String,
}

/// The instances of a service in a view at one time. This value never changes, and shares its content with
/// other states of the view: holding one costs only the memory of the instances that have changed since.
///
/// Ids are the names of nodes. In Curator's layout these are the instances' own ids, unless another program
/// wrote them differently.
pub struct Instances<P> {
    /// All readable instances, by the names of their nodes.
    pub(super) all: SharedMap<Candidate<P>>,
    /// Instances that are enabled and pass the view's filter.
    pub(super) available: SharedMap<Candidate<P>>,
    pub(super) unreadable: SharedMap<Unreadable>,
    /// True once everything was read.
    pub(super) is_loaded: bool,
    /// True if the instances may be out of date.
    pub(super) is_stale: bool,
}

impl<P> Clone for Instances<P> {
    fn clone(&self) -> Self {
        Self {
            all: self.all.clone(),
            available: self.available.clone(),
            unreadable: self.unreadable.clone(),
            is_loaded: self.is_loaded,
            is_stale: self.is_stale,
        }
    }
}

impl<P> Instances<P> {
    pub(super) fn none() -> Self {
        Self {
            all: SharedMap::new(),
            available: SharedMap::new(),
            unreadable: SharedMap::new(),
            is_loaded: false,
            is_stale: true,
        }
    }

    /// Returns true if the instance at `key` is available in this version.
    #[cfg(feature = "tower")]
    pub(crate) fn shows(&self, key: &Arc<str>, instance: &Arc<Instance<P>>) -> bool {
        self.available.get(key).is_some_and(|candidate| Arc::ptr_eq(&candidate.instance, instance))
    }

    /// Calls `each` with the names of the nodes at which `after` has another available instance, or none.
    #[cfg(feature = "tower")]
    pub(crate) fn each_removed(&self, after: &Self, mut each: impl FnMut(&Arc<str>)) {
        let is_same = |one: &Candidate<P>, other: &Candidate<P>| Arc::ptr_eq(&one.instance, &other.instance);
        self.available.differences(&after.available, is_same, |key, before, _| {
            if before.is_some() {
                each(key);
            }
        });
    }

    /// Returns the instances that are enabled and pass the view's filter, in the order of their nodes' names.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Instance<P>>> + DoubleEndedIterator {
        self.available.iter().map(|(_, candidate)| &candidate.instance)
    }

    /// Returns all readable instances with the names of their nodes, including those that are disabled or do
    /// not pass the filter. The name is the id in Curator's layout, and the encoded URL in Dubbo's.
    pub fn all(&self) -> impl ExactSizeIterator<Item = (&str, &Arc<Instance<P>>)> + DoubleEndedIterator {
        self.all.iter().map(|(key, candidate)| (&**key, &candidate.instance))
    }

    /// Returns the instance in [`all`](Self::all) with this id. While an update in Dubbo's layout replaces
    /// the node of the instance, both nodes may be shown; this method returns the newer one.
    pub fn get(&self, id: &str) -> Option<&Arc<Instance<P>>> {
        self.find(id).map(|candidate| &candidate.instance)
    }

    /// Returns the transaction that last wrote the instance with this id. It never goes back while the
    /// instance is shown.
    pub fn version(&self, id: &str) -> Option<i64> {
        self.find(id).map(|candidate| candidate.mzxid)
    }

    fn find(&self, id: &str) -> Option<&Candidate<P>> {
        // In Dubbo's layout the name of a node is a URL that contains the id.
        let with_id = || self.all.iter().map(|(_, one)| one).filter(|one| one.instance.id == id);
        self.all.get(id).or_else(|| with_id().max_by_key(|one| one.mzxid))
    }

    /// Returns the nodes that cannot be read as instances, and the [rules](crate::RegistryLayout::Dubbo) that
    /// are not applied, with the reasons.
    pub fn unreadable(&self) -> impl ExactSizeIterator<Item = &Unreadable> {
        self.unreadable.iter().map(|(_, unreadable)| unreadable)
    }

    /// Returns the number of instances that are enabled and pass the filter.
    pub fn len(&self) -> usize {
        self.available.len()
    }

    /// Returns true if no instance is enabled and passes the filter.
    pub fn is_empty(&self) -> bool {
        self.available.is_empty()
    }
}

impl<P> fmt::Debug for Instances<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instances")
            .field("available", &self.available.len())
            .field("all", &self.all.iter().map(|(id, _)| id).collect::<Vec<_>>())
            .field("unreadable", &self.unreadable)
            .field("stale", &self.is_stale)
            .finish()
    }
}
