use super::{Data, Folder, Known};

/// Answer to a read.
#[derive(Debug)]
pub(crate) enum Answer {
    Data(Known<Data>),
    Folder(Known<Folder>),
}
