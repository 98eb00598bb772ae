//! Arguments that several verbs have, and their forms.

mod contexts;
mod duration;
mod global;
mod servers;

pub(crate) use duration::duration;
pub(crate) use global::{Color, Format, Global};
