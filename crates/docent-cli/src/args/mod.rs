//! Arguments shared by several verbs, and their formats.

mod contexts;
mod duration;
mod global;
mod servers;

pub(crate) use contexts::ContextsFile;
pub(crate) use duration::duration;
pub(crate) use global::{Color, Format, Global};
