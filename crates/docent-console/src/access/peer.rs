use axum::extract::ConnectInfo;
use axum::http::Extensions;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Address that a request came from, if the server passes it on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Peer(pub(super) Option<IpAddr>);

impl Peer {
    pub(super) fn of(extensions: &Extensions) -> Self {
        let info = extensions.get::<ConnectInfo<SocketAddr>>();
        Self(info.map(|ConnectInfo(address)| address.ip().to_canonical()))
    }

    /// Returns the peer without the part of an IPv6 address that every host chooses.
    pub(super) fn network(self) -> Self {
        Self(self.0.map(|address| match address {
            IpAddr::V4(_) => address,
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
            }
        }))
    }

    /// Returns `name` with the address, for names that say little about who it is.
    pub(super) fn describe(self, name: &str) -> String {
        self.0.map_or_else(|| name.to_owned(), |address| format!("{name} from {address}"))
    }
}
