use super::ClientCtx;
use docent_checker::{AttemptId, EventKind, Following};

/// Records what a follower of a value is shown.
///
/// # On drop
/// Records the end of the follower. Records nothing if its process dies.
pub(super) struct FollowerRecord<'a> {
    ctx: &'a ClientCtx,
    id: AttemptId,
}

impl<'a> FollowerRecord<'a> {
    pub(super) fn begin(ctx: &'a ClientCtx, path: &str) -> Self {
        let shown = Self { ctx, id: ctx.recorder.attempt() };
        shown.write(Following::Begins(path.to_owned()));
        shown
    }

    pub(super) fn write(&self, step: Following) {
        self.ctx.recorder.write(EventKind::Followed(self.id, step));
    }
}

impl Drop for FollowerRecord<'_> {
    fn drop(&mut self) {
        if !self.ctx.controls.is_dying() {
            self.write(Following::Stopped);
        }
    }
}
