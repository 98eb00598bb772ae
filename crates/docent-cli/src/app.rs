use crate::args::Global;
use crate::output::Output;

/// Options that all verbs have, and the output that they write to.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) global: Global,
    pub(crate) output: Output,
}
