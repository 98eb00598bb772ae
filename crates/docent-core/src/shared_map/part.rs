use std::sync::Arc;

/// Most entries or parts in one part. A change copies the parts above it, one for each level.
pub(super) const MOST: usize = 32;

/// Fewest entries or parts before a part is joined with the one beside it, where both fit into one.
const FEW: usize = MOST / 4;

pub(super) type Entry<V> = (Arc<str>, V);

/// Part of a map: a tree whose leaves all have the same depth.
#[derive(Clone)]
pub(super) enum Part<V> {
    Leaf(Vec<Entry<V>>),
    Inner(Vec<Child<V>>),
}

/// Part below another.
pub(super) struct Child<V> {
    /// A name that is none of the parts before it, and not after any of its own.
    first: Arc<str>,
    /// Number of entries in it.
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

    /// Number of entries or parts in it.
    fn width(&self) -> usize {
        match self {
            Self::Leaf(entries) => entries.len(),
            Self::Inner(children) => children.len(),
        }
    }

    /// The leaf with the entry number `index`, and the place of that in it.
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

    /// The place of `name`, or the place where it would be.
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
    /// Sets the value of `name`. Returns the one before, and the upper half where the part was split.
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

    /// Takes `name`, which it has, out.
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

    /// Adds what comes after it, of the same depth.
    fn append(&mut self, upper: Arc<Self>) {
        match (self, Arc::unwrap_or_clone(upper)) {
            (Self::Leaf(entries), Self::Leaf(upper)) => extend(entries, upper),
            (Self::Inner(children), Self::Inner(upper)) => extend(children, upper),
            _ => unreachable!("parts beside each other have the same depth"),
        }
    }
}

/// Joins the part number `at` with the one beside it, if both fit into one, and takes it out if it is empty.
fn join<V: Clone>(children: &mut Vec<Child<V>>, at: usize) {
    if children[at].len == 0 && children.len() > 1 {
        children.remove(at);
        return;
    }
    let lower = at.min(children.len().saturating_sub(2));
    let Some([one, other]) = children.get(lower..lower + 2) else { return };
    if one.part.width() + other.part.width() > MOST {
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

/// The number of the part that `name` belongs to.
fn child_for<V>(children: &[Child<V>], name: &str) -> usize {
    children.partition_point(|child| *child.first <= *name).saturating_sub(1)
}

/// Adds the list of the part beside it, which fits into one with it.
fn extend<T>(list: &mut Vec<T>, upper: Vec<T>) {
    list.reserve_exact(upper.len());
    list.extend(upper);
}

/// Inserts `new` into the list of a part. Returns the upper part of a list that was full: behind all others
/// `new` alone, so that names which come in their order fill each part, and otherwise half of it.
fn insert_at<T>(list: &mut Vec<T>, at: usize, new: T) -> Option<Vec<T>> {
    if list.len() < MOST {
        // A vector left to itself doubles, and a copied one begins with no room at all.
        if list.len() == list.capacity() {
            let room = (list.len() / 2).max(4).min(MOST - list.len());
            list.reserve_exact(room);
        }
        list.insert(at, new);
        return None;
    }
    if at == MOST {
        return Some(vec![new]);
    }
    let mut upper = Vec::with_capacity(MOST);
    upper.extend(list.drain(MOST / 2..));
    match at.checked_sub(MOST / 2) {
        Some(at) => upper.insert(at, new),
        None => list.insert(at, new),
    }
    Some(upper)
}
