use super::{Cleanup, LostCreates, Markers, OwnFolder};
use crate::session::SessionContext;
use std::ops::Deref;

/// A session with its exact writes and cleanups.
#[derive(Debug)]
pub(crate) struct CleanupContext {
    session: SessionContext,
    pub(crate) cleanup: Cleanup,
    pub(crate) markers: Markers,
    pub(crate) own_folder: OwnFolder,
    /// Creates of tickets and markers that may be applied late.
    pub(crate) lost_creates: LostCreates,
}

impl CleanupContext {
    pub(crate) fn new(session: SessionContext, cleanup: Cleanup) -> Self {
        Self {
            session,
            cleanup,
            markers: Markers::default(),
            own_folder: OwnFolder::default(),
            lost_creates: LostCreates::default(),
        }
    }
}

impl Deref for CleanupContext {
    type Target = SessionContext;

    fn deref(&self) -> &SessionContext {
        &self.session
    }
}
