//! Four-letter words: commands in place of a handshake, answered with text as ZooKeeper 3.8 prints it.

mod connections;
mod date;
mod monitor;
mod server;
mod text;
mod view;
mod watches;
mod word;

pub(super) use view::View;
pub(super) use word::{LENGTH, Word, name};
