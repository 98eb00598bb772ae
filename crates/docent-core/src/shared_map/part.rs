use std::sync::Arc;

/// Maximum number of entries or children in one part. A change copies one part on each level.
pub(super) const MAX_LEN: usize = 32;

/// Minimum number of entries or children: a smaller part is merged with a neighbour if both fit into one
/// part.
const FEW: usize = MAX_LEN / 4;

pub(super) type Entry<V> = (Arc<str>, V);

/// Part of a map: a tree whose leaves all have the same depth.
#[derive(Clone)]
pub(super) enum Part<V> {
    Leaf(Vec<Entry<V>>),
    Inner(Vec<Child<V>>),
}

/// A part below another part.
pub(super) struct Child<V> {
    /// A lower bound of the child's names that is greater than all names of the children before it.
    first: Arc<str>,
    /// Number of entries in the child.
    pub(super) len: usize,
    pub(super) part: Arc<Part<V>>,
}

impl<V> Clone for Child<V> {
    fn clone(&self) -> Self {
        Self { first: Arc::clone(&self.first), len: self.len, part: Arc::clone(&self.part) }
    }
}

impl<V> Child<V> {
    pub(super) fn new(part: Arc<Part<V>>) -> Option<Self> {
        let first = match &*part {
            Part::Leaf(entries) => Arc::clone(&entries.first()?.0),
            Part::Inner(children) => Arc::clone(&children.first()?.first),
        };
        Some(Self { first, len: part.len(), part })
    }
}

impl<V> Part<V> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Leaf(entries) => entries.len(),
            Self::Inner(children) => children.iter().map(|child| child.len).sum(),
        }
    }

    /// Number of entries or children directly in this part.
    fn width(&self) -> usize {
        match self {
            Self::Leaf(entries) => entries.len(),
            Self::Inner(children) => children.len(),
        }
    }

    /// Returns the leaf that contains the entry at `index`, and the entry's position in the leaf.
    pub(super) fn leaf_at(&self, mut index: usize) -> Option<(&[Entry<V>], usize)> {
        let mut part = self;
        loop {
            match part {
                Self::Leaf(entries) => return (index < entries.len()).then_some((&**entries, index)),
                Self::Inner(children) => {
                    let child = children.iter().find(|child| match index.checked_sub(child.len) {
                        Some(rest) => {
                            index = rest;
                            false
                        }
                        None => true,
                    });
                    part = &child?.part;
                }
            }
        }
    }

    /// Returns the index of `name`, or the index at which it would be inserted.
    pub(super) fn position(&self, name: &str) -> Result<usize, usize> {
        let (mut part, mut before) = (self, 0);
        loop {
            match part {
                Self::Leaf(entries) => {
                    let place = find(entries, name);
                    return place.map(|at| before + at).map_err(|at| before + at);
                }
                Self::Inner(children) => {
                    let at = child_for(children, name);
                    before += children[..at].iter().map(|child| child.len).sum::<usize>();
                    part = &children[at].part;
                }
            }
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Entry<V>> {
        let mut part = self;
        loop {
            match part {
                Self::Leaf(entries) => return find(entries, name).ok().map(|at| &entries[at]),
                Self::Inner(children) => part = &children[child_for(children, name)].part,
            }
        }
    }
}

impl<V: Clone> Part<V> {
    /// Sets the value of `name`. Returns the previous value, and the upper half if the part was split.
    pub(super) fn insert(&mut self, name: &Arc<str>, value: V) -> (Option<V>, Option<Child<V>>) {
        match self {
            Self::Leaf(entries) => match find(entries, name) {
                Ok(at) => (Some(std::mem::replace(&mut entries[at].1, value)), None),
                Err(at) => {
                    let upper = insert_at(entries, at, (Arc::clone(name), value));
                    (None, upper.and_then(|upper| Child::new(Arc::new(Self::Leaf(upper)))))
                }
            },
            Self::Inner(children) => {
                let at = child_for(children, name);
                let child = &mut children[at];
                let (before, split) = Arc::make_mut(&mut child.part).insert(name, value);
                child.len += usize::from(before.is_none());
                if **name < *child.first {
                    child.first = Arc::clone(name);
                }
                let Some(split) = split else { return (before, None) };
                child.len -= split.len;
                let upper = insert_at(children, at + 1, split);
                (before, upper.and_then(|upper| Child::new(Arc::new(Self::Inner(upper)))))
            }
        }
    }

    /// Removes `name`, which this part must contain.
    pub(super) fn remove(&mut self, name: &str) -> Option<V> {
        match self {
            Self::Leaf(entries) => find(entries, name).ok().map(|at| entries.remove(at).1),
            Self::Inner(children) => {
                let at = child_for(children, name);
                let child = &mut children[at];
                let removed = Arc::make_mut(&mut child.part).remove(name);
                child.len -= usize::from(removed.is_some());
                if child.part.width() < FEW {
                    join(children, at);
                }
                removed
            }
        }
    }

    /// Appends the part that follows, which has the same depth.
    fn append(&mut self, upper: Arc<Self>) {
        match (self, Arc::unwrap_or_clone(upper)) {
            (Self::Leaf(entries), Self::Leaf(upper)) => extend(entries, upper),
            (Self::Inner(children), Self::Inner(upper)) => extend(children, upper),
            _ => unreachable!("neighbouring parts have the same depth"),
        }
    }
}

/// Merges the part at `at` with a neighbour if both fit into one part. Removes the part if it is empty.
fn join<V: Clone>(children: &mut Vec<Child<V>>, at: usize) {
    if children[at].len == 0 && children.len() > 1 {
        children.remove(at);
        return;
    }
    let lower = at.min(children.len().saturating_sub(2));
    let Some([one, other]) = children.get(lower..lower + 2) else { return };
    if one.part.width() + other.part.width() > MAX_LEN {
        return;
    }
    let upper = children.remove(lower + 1);
    let child = &mut children[lower];
    child.len += upper.len;
    Arc::make_mut(&mut child.part).append(upper.part);
}

fn find<V>(entries: &[Entry<V>], name: &str) -> Result<usize, usize> {
    entries.binary_search_by(|(known, _)| (**known).cmp(name))
}

/// Returns the index of the child that `name` belongs to.
fn child_for<V>(children: &[Child<V>], name: &str) -> usize {
    children.partition_point(|child| *child.first <= *name).saturating_sub(1)
}

/// Appends the list of the neighbouring part; both fit into one part.
fn extend<T>(list: &mut Vec<T>, upper: Vec<T>) {
    list.reserve_exact(upper.len());
    list.extend(upper);
}

/// Inserts `new` into the list of a part. If the list was full, returns its new upper part. If `new` is last,
/// the upper part contains only `new`, so that names inserted in order fill each part; otherwise it contains
/// half of the list.
fn insert_at<T>(list: &mut Vec<T>, at: usize, new: T) -> Option<Vec<T>> {
    if list.len() < MAX_LEN {
        // A vector that grows on its own doubles its capacity, and a copied vector has no spare capacity.
        if list.len() == list.capacity() {
            let room = (list.len() / 2).max(4).min(MAX_LEN - list.len());
            list.reserve_exact(room);
        }
        list.insert(at, new);
        return None;
    }
    if at == MAX_LEN {
        return Some(vec![new]);
    }
    let mut upper = Vec::with_capacity(MAX_LEN);
    upper.extend(list.drain(MAX_LEN / 2..));
    match at.checked_sub(MAX_LEN / 2) {
        Some(at) => upper.insert(at, new),
        None => list.insert(at, new),
    }
    Some(upper)
}
