//! Updates of an announced instance, and the nodes that they replace.

use super::handle::{Announcement, checked};
use super::{InstanceNode, Registration};
use crate::instance::EncodedInstance;
use docent_core::Error;
use std::sync::Arc;

impl Registration {
    pub(super) async fn put(
        &self,
        change: impl FnOnce(&EncodedInstance) -> Result<EncodedInstance, Error>,
    ) -> Result<(), Error> {
        let _replacing = self.say(change)?;
        self.settle().await
    }

    /// Changes the instance without waiting. The replaced node stays announced until the new one is, or
    /// nobody waits for that any more.
    fn say(
        &self,
        change: impl FnOnce(&EncodedInstance) -> Result<EncodedInstance, Error>,
    ) -> Result<Replacing<'_>, Error> {
        let mut state = self.state();
        let encoded = change(&state.encoded)?;
        let (path, data) = checked(&self.client, &self.placement, &self.service, self.side, &encoded)?;
        if path == state.node.path() {
            state.encoded = encoded;
            // Before the data, which wakes the node's task: it looks at both.
            self.set_farewell(&state);
            // While the state is locked, so that the newest update is written last.
            state.node.want(data);
        } else {
            let before = state.replaced.iter().position(|node| node.path() == path);
            let node = match before.map(|place| state.replaced.swap_remove(place)) {
                Some(node) => {
                    node.want(data);
                    node
                }
                None if encoded.service_type.is_dynamic() => {
                    Arc::new(InstanceNode::keep_on(&self.client, &path, data)?)
                }
                None => Arc::new(InstanceNode::persistent(&self.client, path, data)),
            };
            let replaced = std::mem::replace(&mut state.node, node);
            replaced.release();
            state.replaced.push(replaced);
            state.encoded = encoded;
            self.set_farewell(&state);
        }
        state.waiting += 1;
        Ok(Replacing(self))
    }

    /// Sets what the client's shutdown writes before it removes the node: the same instance, disabled. Where
    /// that would be another node nothing is written.
    pub(super) fn set_farewell(&self, state: &Announcement) {
        let Announcement { encoded, node, .. } = state;
        let disabled = encoded.clone().enabled(false);
        let farewell = checked(&self.client, &self.placement, &self.service, self.side, &disabled).ok();
        let farewell =
            farewell.filter(|(path, _)| !self.drain.is_zero() && encoded.enabled && path == node.path());
        node.set_farewell(farewell.map(|(_, data)| (data, self.drain)));
    }

    /// Waits until the servers have the newest instance, and nothing of the one it replaced. An update made
    /// meanwhile is waited for, too: it supersedes the earlier one, of which the servers may have nothing
    /// then.
    pub(super) async fn settle(&self) -> Result<(), Error> {
        let node = loop {
            let node = Arc::clone(&self.state().node);
            let written = node.written().await;
            if Arc::ptr_eq(&self.state().node, &node) {
                // Else it was superseded, and is wanted again.
                if written? {
                    break node;
                }
            }
        };
        while let Some(replaced) = self.replaced_by(&node) {
            if let InstanceNode::Persistent(persistent) = &*replaced {
                persistent.remove().await?;
                self.state().replaced.retain(|other| !Arc::ptr_eq(other, &replaced));
            } else {
                replaced.remove().await?;
            }
        }
        Ok(())
    }

    /// A node that `node` has replaced, if that was not replaced itself. Kept ones are nobody else's from now
    /// on; others are looked after until they are gone, as nobody else would delete them.
    fn replaced_by(&self, node: &Arc<InstanceNode>) -> Option<Arc<InstanceNode>> {
        let mut state = self.state();
        if !Arc::ptr_eq(&state.node, node) {
            return None;
        }
        match state.replaced.last()?.as_ref() {
            InstanceNode::Kept(_) => {
                let replaced = state.replaced.pop()?;
                // While the state is locked: it may be wanted again from then on.
                replaced.leave();
                Some(replaced)
            }
            InstanceNode::Persistent(_) => state.replaced.last().cloned(),
        }
    }
}

/// Somebody waits for an update.
///
/// # On drop
/// With the last of them dynamic instances that were replaced go in the background, whether the new one is
/// there or not.
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
