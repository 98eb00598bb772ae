/// What a path is to the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Area {
    /// Needs no sign-in.
    Public { is_asset: bool },
    /// For programs, which may send a token with each request. Never redirected.
    Programs,
    /// The event stream of a page. Never redirected.
    Events,
    /// Everything else, for browsers.
    Pages,
}

impl Area {
    /// Returns the area of a path, as the router sees the path: still encoded, so an encoded letter leads to
    /// no route that this function takes for another.
    pub(super) fn of(path: &str) -> Self {
        match path {
            "/healthz" | "/readyz" | "/sign-in" => Self::Public { is_asset: false },
            "/metrics" | "/api" => Self::Programs,
            "/events" => Self::Events,
            _ if path.starts_with("/assets/") => Self::Public { is_asset: true },
            _ if path.starts_with("/api/") => Self::Programs,
            _ => Self::Pages,
        }
    }
}
