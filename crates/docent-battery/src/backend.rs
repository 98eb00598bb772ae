use crate::{MemoryNet, Net, ServerOptions, TestServer};

/// Server that a test runs against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Backend {
    /// The embedded server, one for each test, over a network in memory and on the test's own paused time:
    /// as soon as every task waits, tokio moves its clock on to the next timer.
    Memory,
    /// The embedded server, one for each test, on loopback and in real time: for tests of sockets, processes
    /// and threads.
    Embedded,
    /// A real ZooKeeper, shared by the tests of a binary unless a test asks for its own.
    Real,
}

thread_local! {
    /// Servers of one test reach each other. Its runtime has one thread, as paused time asks for.
    static MEMORY: MemoryNet = MemoryNet::new();
}

impl Backend {
    /// A server to use but not to stop, with a path of the test's own.
    ///
    /// # Panics
    /// When it does not start; a real one names what to install.
    pub async fn start(self) -> TestServer {
        let options = ServerOptions::default();
        match self {
            Self::Memory => TestServer::embedded(&options, false, in_memory()).await,
            Self::Embedded => TestServer::embedded(&options, false, Net::Loopback).await,
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
            Self::Memory => TestServer::embedded(&options, true, in_memory()).await,
            Self::Embedded => TestServer::embedded(&options, true, Net::Loopback).await,
            Self::Real => TestServer::real(options).await,
        }
    }
}

fn in_memory() -> Net {
    Net::Memory(MEMORY.with(MemoryNet::clone))
}

/// Runs each test on both backends: `embedded::name` always, in memory and on paused time, and `real::name`
/// where ignored tests are asked for, as `cargo xtask test` does. Use it once in a module, for all its tests.
/// The crate needs tokio with `macros`, `rt` and `test-util`.
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
    ($($tests:tt)+) => {
        $crate::on_backends! { Memory, true, $($tests)+ }
    };
}

/// As [`both_backends`], with the embedded server on loopback and in real time: for tests of sockets,
/// processes and threads.
#[macro_export]
macro_rules! both_backends_in_real_time {
    ($($tests:tt)+) => {
        $crate::on_backends! { Embedded, false, $($tests)+ }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! on_backends {
    ($embedded:ident, $paused:literal,
     $($(#[$attribute:meta])* async fn $name:ident($backend:ident: $type:ty) $body:block)+) => {
        $(
            #[cfg(test)]
            #[allow(clippy::unwrap_used, reason = "it is the body of a test")]
            async fn $name($backend: $type) $body
        )+

        #[cfg(test)]
        mod embedded {
            $(
                $(#[$attribute])*
                #[tokio::test(start_paused = $paused)]
                async fn $name() {
                    super::$name($crate::Backend::$embedded).await;
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
