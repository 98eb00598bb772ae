use crate::controls::Controls;
use crate::setting::Setting;
use docent::{Client, Error, ErrorKind};
use docent_checker::ClientRecorder;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;
use tokio_util::sync::CancellationToken;

/// Context of one client: its handles, the recorder of its events, and the settings of the run.
#[derive(Debug, Clone)]
pub(crate) struct ClientCtx {
    pub(crate) client: Client,
    pub(crate) recorder: ClientRecorder,
    pub(crate) setting: Setting,
    pub(crate) controls: Controls,
    /// Cancelled when nothing new may begin.
    pub(crate) stop: CancellationToken,
    pub(crate) denied: Denied,
}

impl ClientCtx {
    /// Notes an operation that failed. Breaks if the client is closed.
    pub(crate) fn failed(&self, error: &Error) -> ControlFlow<()> {
        if error.kind() == ErrorKind::NoAuth {
            self.denied.0.borrow_mut().push(error.to_string());
        }
        match error.kind() {
            ErrorKind::Closed => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Operations of a run that failed because of a missing permission. Every client must have the permissions
/// that its workload needs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Denied(Rc<RefCell<Vec<String>>>);

impl Denied {
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.borrow().clone()
    }
}
