//! Who may use the console: the check of hosts, signing in, sessions of browsers, and headers of replies.

#[allow(clippy::module_inception, reason = "the module is named after its type")]
mod access;
mod attempts;
mod cookie;
mod error;
mod gate;
mod headers;
mod hosts;
mod local_path;
mod peer;
mod routes;
mod secret;
mod secret_file;
mod sessions;
mod sign_in;
#[cfg(test)]
mod tests;
mod visitor;

pub use access::Access;
pub use error::AccessError;
pub(crate) use gate::Gate;
pub(crate) use visitor::Visitor;
