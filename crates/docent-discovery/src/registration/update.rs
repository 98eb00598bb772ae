//! Updates of an announced instance, and the nodes that they replace.

use super::handle::Announcement;
use super::{InstanceNode, Registration};
use crate::instance::EncodedInstance;
use docent_core::{Error, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

impl Registration {
    pub(super) async fn put(
        &self,
        change: impl FnOnce(&EncodedInstance) -> Result<EncodedInstance, Error>,
    ) -> Result<(), Error> {
        let (before, number, _replacing) = self.apply(change)?;
        let settled = self.settle().await;
        if let Err(error) = &settled
            && error.kind() == ErrorKind::InvalidInput
        {
            self.restore(before, number);
        }
        settled
    }

    /// Makes `before` the announced instance again, after the update with this number was refused.
    fn restore(&self, before: EncodedInstance, number: u64) {
        let mut state = self.state();
        // An update that was made since remains.
        if state.number == number {
            // It was announced before, so it fits.
            let _ = self.set(&mut state, before);
        }
    }

    /// Changes the instance without waiting. Returns the one before, and the number of the change.
    fn apply(
        &self,
        change: impl FnOnce(&EncodedInstance) -> Result<EncodedInstance, Error>,
    ) -> Result<(EncodedInstance, u64, Replacing<'_>), Error> {
        let mut state = self.state();
        let encoded = change(&state.encoded)?;
        let before = self.set(&mut state, encoded)?;
        state.waiting += 1;
        Ok((before, state.number, Replacing(self)))
    }

    /// Replaces the instance, and returns the one before. The replaced node stays announced until the new one
    /// is, or until no caller waits for that any more.
    fn set(&self, state: &mut Announcement, encoded: EncodedInstance) -> Result<EncodedInstance, Error> {
        let (path, data) = self.announcer.node(&encoded)?;
        let before;
        if path == state.node.path() {
            before = std::mem::replace(&mut state.encoded, encoded);
            // Before the data, whose change wakes the node's task: the task reads both.
            self.set_final_data(state);
            // While the state is locked, so that the latest update is written last.
            state.node.want(data);
        } else {
            let earlier = state.replaced.iter().position(|node| node.path() == path);
            let node = match earlier.map(|place| state.replaced.swap_remove(place)) {
                Some(node) => {
                    node.want(data);
                    node
                }
                None if encoded.service_type.is_dynamic() => {
                    Arc::new(InstanceNode::keep_on(&self.announcer, &path, data)?)
                }
                None => Arc::new(InstanceNode::persistent(&self.announcer, path, data)),
            };
            let replaced = std::mem::replace(&mut state.node, node);
            replaced.release();
            state.replaced.push(replaced);
            before = std::mem::replace(&mut state.encoded, encoded);
            self.set_final_data(state);
        }
        state.number += 1;
        Ok(before)
    }

    /// Sets what the client's shutdown writes before it removes the node, and what the node shows while
    /// another client wants that: the same instance, disabled. If that would be another node, nothing is
    /// written.
    pub(super) fn set_final_data(&self, state: &Announcement) {
        let Announcement { encoded, node, .. } = state;
        let disabled = encoded.clone().enabled(false);
        let final_data = self.announcer.node(&disabled).ok().filter(|(path, _)| path == node.path());
        // A disabled instance needs no drain.
        let drain = if encoded.enabled { self.announcer.drain } else { Duration::ZERO };
        node.set_final_data(final_data.map(|(_, data)| (data, drain)));
    }

    /// Waits until the servers have the latest instance, and none of the nodes that it replaced. A concurrent
    /// update is awaited as well: it supersedes the earlier one, which may never reach the servers.
    pub(super) async fn settle(&self) -> Result<(), Error> {
        let node = loop {
            let node = Arc::clone(&self.state().node);
            let written = node.written().await;
            if Arc::ptr_eq(&self.state().node, &node) {
                // Otherwise the node was superseded, and is wanted again.
                if written? {
                    break node;
                }
            }
        };
        while let Some(replaced) = self.replaced_by(&node) {
            replaced.remove().await?;
            // A kept node is not in the list any more.
            self.state().replaced.retain(|other| !Arc::ptr_eq(other, &replaced));
        }
        Ok(())
    }

    /// Returns a node that `node` has replaced, unless `node` was replaced itself. A kept node is removed
    /// from the list, so only the caller has it from now on. A persistent node stays in the list until it is
    /// deleted, because nothing else would delete it.
    fn replaced_by(&self, node: &Arc<InstanceNode>) -> Option<Arc<InstanceNode>> {
        let mut state = self.state();
        if !Arc::ptr_eq(&state.node, node) {
            return None;
        }
        match state.replaced.last()?.as_ref() {
            InstanceNode::Kept(_) => {
                let replaced = state.replaced.pop()?;
                // While the state is locked: the node may be wanted again after that.
                replaced.leave();
                Some(replaced)
            }
            InstanceNode::Persistent(_) => state.replaced.last().cloned(),
        }
    }
}

/// A caller that waits for an update.
///
/// # On drop
/// The last caller removes replaced dynamic instances in the background, whether the new one exists or not.
struct Replacing<'a>(&'a Registration);

impl Drop for Replacing<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.waiting -= 1;
        if state.waiting == 0 {
            state.replaced.iter().for_each(|node| node.leave());
            state.replaced.retain(|node| matches!(**node, InstanceNode::Persistent(_)));
        }
    }
}
