use crate::args::Global;
use crate::output::Output;

/// Global options and output, shared by all verbs.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) global: Global,
    pub(crate) output: Output,
}
