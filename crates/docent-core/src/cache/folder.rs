use std::ops::Range;
use std::sync::Arc;

/// Children of a node.
#[derive(Debug, Default)]
pub(super) struct Folder {
    /// Keys of the children, and of some nodes that were removed since.
    children: Vec<Arc<str>>,
    /// True if these are the children of the last listing, in its order.
    is_ordered: bool,
    /// Number of keys of removed nodes.
    removed: usize,
    /// Number of listings so far.
    listings: u64,
}

impl Folder {
    /// Starts a listing and returns its number.
    pub(super) fn begin_listing(&mut self) -> u64 {
        self.listings += 1;
        self.listings
    }

    /// Returns the ranges of the children and of the listed `names` in which the two may differ.
    pub(super) fn changed(&self, names: &[String]) -> (Range<usize>, Range<usize>) {
        let (start, end) = match self.is_ordered {
            true => unmoved(&self.children, names),
            false => (0, 0),
        };
        (start..self.children.len() - end, start..names.len() - end)
    }

    /// Replaces the children in `range` by the `listed` ones, and returns the replaced children.
    pub(super) fn replace(&mut self, range: Range<usize>, listed: Vec<Arc<str>>) -> Vec<Arc<str>> {
        (self.is_ordered, self.removed) = (true, 0);
        self.children.splice(range, listed).collect()
    }

    /// Adds a child that is not in the last listing.
    pub(super) fn add(&mut self, child: Arc<str>) {
        self.children.push(child);
        self.is_ordered = false;
    }

    /// Records that the next listing may differ from the last one anywhere.
    pub(super) fn forget_order(&mut self) {
        self.is_ordered = false;
    }

    /// Records that a child was removed, or got another key.
    pub(super) fn removed(&mut self, is_current: impl Fn(&Arc<str>) -> bool) {
        self.is_ordered = false;
        self.removed += 1;
        if 2 * self.removed > self.children.len() + 16 {
            self.children.retain(is_current);
            self.removed = 0;
        }
    }

    pub(super) fn into_children(self) -> Vec<Arc<str>> {
        self.children
    }
}

/// Returns the number of equal names at the start and at the end of two lists.
fn unmoved(children: &[Arc<str>], names: &[String]) -> (usize, usize) {
    // The key of a child ends with its name.
    let is_same = |(child, name): &(&Arc<str>, &String)| child.rsplit('/').next() == Some(name.as_str());
    let start = children.iter().zip(names).take_while(is_same).count();
    let rest = children[start..].iter().rev().zip(names[start..].iter().rev());
    (start, rest.take_while(is_same).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_listed_twice_counts_once() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let children = |children: &[&str]| children.iter().map(|child| Arc::from(*child)).collect::<Vec<_>>();
        assert_eq!(unmoved(&children(&["/a/d", "/a/d"]), &names(&["d"])), (1, 0));
        assert_eq!(unmoved(&children(&["d"]), &names(&["d", "d"])), (1, 0));
    }

    #[test]
    fn removed_children_do_not_pile_up() {
        let mut folder = Folder::default();
        for _ in 0..1_000 {
            folder.add(Arc::from("a"));
            folder.removed(|_| false);
        }
        assert!(folder.children.len() < 100, "{}", folder.children.len());
    }
}
