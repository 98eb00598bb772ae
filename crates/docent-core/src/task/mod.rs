//! Wake-ups of tasks.

mod bell;
mod seldom;

pub(crate) use bell::Bell;
pub(crate) use seldom::Seldom;
