use super::{RecipeKind, Stage};
use crate::telemetry::RecipeInstruments;
use std::sync::Arc;

/// A recipe as a client uses it: its kind, and the client's metrics for it.
#[derive(Clone)]
pub(crate) struct Recipe {
    kind: &'static RecipeKind,
    pub(crate) metrics: Arc<RecipeInstruments>,
}

impl Recipe {
    pub(crate) fn new(kind: &'static RecipeKind, metrics: Arc<RecipeInstruments>) -> Self {
        Self { kind, metrics }
    }

    pub(crate) fn label(&self) -> &'static str {
        self.kind.label()
    }

    pub(crate) fn acquire(&self) -> &'static str {
        self.kind.acquire()
    }

    pub(crate) fn stage(&self) -> Stage {
        self.kind.stage()
    }
}
