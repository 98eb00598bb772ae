//! Four-letter words: commands sent in place of a handshake. The answers have the format of ZooKeeper 3.8.

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
