use super::SharedMap;
use super::part::{Entry, Part};
use std::cmp::Ordering;
use std::slice;
use std::sync::Arc;

impl<V> SharedMap<V> {
    /// Calls `each`, in order of names, for every name that is in only one of the two maps, or in both with
    /// different values, with its values in this map and in `after`. Values for which `is_same` returns true
    /// are equal.
    ///
    /// The cost is proportional to the number of changes, not to the size of the maps: parts that both maps
    /// share are skipped.
    pub fn differences<'a>(
        &'a self,
        after: &'a Self,
        is_same: impl Fn(&V, &V) -> bool,
        mut each: impl FnMut(&'a Arc<str>, Option<&'a V>, Option<&'a V>),
    ) {
        let (mut before, mut after) = (Rest::new(self), Rest::new(after));
        loop {
            match (before.next(), after.next()) {
                (None, None) => return,
                (Some(Next::Part(one, height)), Some(Next::Part(other, other_height))) => {
                    if is_shared(one, other) {
                        before.skip();
                        after.skip();
                        continue;
                    }
                    // Open the higher part first, until both have the same height: shared parts are then
                    // reached at the same time.
                    if height >= other_height {
                        before.open();
                    }
                    if other_height >= height {
                        after.open();
                    }
                }
                (Some(Next::Part(..)), _) => before.open(),
                (_, Some(Next::Part(..))) => after.open(),
                (Some(Next::Entry((name, value))), None) => {
                    before.step();
                    each(name, Some(value), None);
                }
                (None, Some(Next::Entry((name, value)))) => {
                    after.step();
                    each(name, None, Some(value));
                }
                (Some(Next::Entry(one)), Some(Next::Entry(other))) => {
                    let order = one.0.cmp(&other.0);
                    if order.is_le() {
                        before.step();
                    }
                    if order.is_ge() {
                        after.step();
                    }
                    match order {
                        Ordering::Less => each(&one.0, Some(&one.1), None),
                        Ordering::Greater => each(&other.0, None, Some(&other.1)),
                        Ordering::Equal if is_same(&one.1, &other.1) => {}
                        Ordering::Equal => each(&other.0, Some(&one.1), Some(&other.1)),
                    }
                }
            }
        }
    }
}

fn is_shared<V>(one: &Arc<Part<V>>, other: &Arc<Part<V>>) -> bool {
    Arc::ptr_eq(one, other) || planted!(PartsByLength) && one.len() == other.len()
}

/// The rest of a map that was not visited yet.
struct Rest<'a, V> {
    /// Parts with their heights, the next one last.
    parts: Vec<(&'a Arc<Part<V>>, usize)>,
    /// Entries that come before the parts.
    entries: slice::Iter<'a, Entry<V>>,
}

enum Next<'a, V> {
    Part(&'a Arc<Part<V>>, usize),
    Entry(&'a Entry<V>),
}

impl<'a, V> Rest<'a, V> {
    fn new(map: &'a SharedMap<V>) -> Self {
        Self { parts: vec![map.root()], entries: [].iter() }
    }

    fn next(&self) -> Option<Next<'a, V>> {
        let entry = self.entries.as_slice().first().map(Next::Entry);
        entry.or_else(|| self.parts.last().map(|(part, height)| Next::Part(part, *height)))
    }

    /// Skips the next part.
    fn skip(&mut self) {
        self.parts.pop();
    }

    /// Descends into the next part.
    fn open(&mut self) {
        let Some((part, height)) = self.parts.pop() else { return };
        match &**part {
            Part::Leaf(entries) => self.entries = entries.iter(),
            Part::Inner(children) => {
                self.parts.extend(children.iter().rev().map(|child| (&child.part, height - 1)));
            }
        }
    }

    /// Advances past the next entry.
    fn step(&mut self) {
        self.entries.next();
    }
}
