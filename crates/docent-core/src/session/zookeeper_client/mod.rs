#![doc = include_str!("README.md")]

mod call;
mod connect;
mod convert;
mod driver;
mod options;
mod session;
mod shared;

#[cfg(docent_gssapi)]
pub use options::Sasl;
#[cfg(feature = "zookeeper-client-tls")]
pub use options::Tls;
pub use options::ZookeeperClient;
pub(crate) use session::ZookeeperClientSession;
