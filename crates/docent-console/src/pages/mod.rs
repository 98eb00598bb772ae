//! Pages: what a browser is shown, in parts of which each can be sent again alone.

mod configs;
mod draw;
mod elections;
mod ensemble;
mod filter;
mod html;
mod layout;
mod line;
mod lists;
mod node;
mod overview;
mod queues;
mod recipe;
mod sessions;
mod values;
mod view;

pub(crate) use draw::{Drawn, Part};
pub(crate) use filter::Filter;
pub(crate) use html::{Pen, at, milliseconds, path_segments};
pub(crate) use layout::{Frame, connection, document, message};
pub(crate) use node::{data_page, diff_page, missing_node, node_page};
pub(crate) use sessions::sessions_page;
pub(crate) use view::{View, draw};
