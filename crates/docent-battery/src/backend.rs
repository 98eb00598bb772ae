use crate::{ServerOptions, TestServer};

/// Server that a test runs against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Backend {
    /// The embedded server, one for each test.
    Embedded,
    /// A real ZooKeeper, shared by the tests of a binary unless a test asks for its own.
    Real,
}

impl Backend {
    /// A server to use but not to stop, with a path of the test's own.
    ///
    /// # Panics
    /// When it does not start; a real one names what to install.
    pub async fn start(self) -> TestServer {
        match self {
            Self::Embedded => TestServer::embedded(&ServerOptions::default(), false).await,
            Self::Real => TestServer::shared().await,
        }
    }

    /// A server that the test may [stop](TestServer::stop). Real ones are started one at a time in a process,
    /// so a test that asks for a second one waits for ever.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    pub async fn start_own(self) -> TestServer {
        self.start_own_with(ServerOptions::default()).await
    }

    /// As [`start_own`](Self::start_own), with options.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    pub async fn start_own_with(self, options: ServerOptions) -> TestServer {
        match self {
            Self::Embedded => TestServer::embedded(&options, true).await,
            Self::Real => TestServer::real(options).await,
        }
    }
}

/// Runs each test on both backends: `embedded::name` always, `real::name` where ignored tests are asked for,
/// as `cargo xtask test` does. Use it once in a module, for all its tests. The crate needs tokio with
/// `macros` and `rt`.
///
/// ```
/// use docent_battery::{Backend, both_backends};
///
/// both_backends! {
///     async fn a_session_can_be_opened(backend: Backend) {
///         let server = backend.start().await;
///         server.client().await.close().await.unwrap();
///     }
/// }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! both_backends {
    ($($(#[$attribute:meta])* async fn $name:ident($backend:ident: $type:ty) $body:block)+) => {
        $(
            #[cfg(test)]
            #[allow(clippy::unwrap_used, reason = "it is the body of a test")]
            async fn $name($backend: $type) $body
        )+

        #[cfg(test)]
        mod embedded {
            $(
                $(#[$attribute])*
                #[tokio::test]
                async fn $name() {
                    super::$name($crate::Backend::Embedded).await;
                }
            )+
        }

        #[cfg(test)]
        mod real {
            $(
                $(#[$attribute])*
                #[tokio::test]
                #[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
                async fn $name() {
                    super::$name($crate::Backend::Real).await;
                }
            )+
        }
    };
}
