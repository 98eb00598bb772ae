use crate::{Dialect, MemoryNet, Net, ServerOptions, TestServer};

/// Server that a test runs against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Backend {
    /// The embedded server, one for each test, over an in-memory network and on the test's own paused time:
    /// as soon as every task waits, tokio advances its clock to the next timer.
    Memory,
    /// The embedded server, one for each test, on loopback and in real time: for tests of sockets, processes
    /// and threads.
    Embedded,
    /// Like [`Memory`](Self::Memory), in a dialect of servers that know less.
    As(Dialect),
    /// A real ZooKeeper, shared by the tests of a binary unless a test asks for its own.
    Real,
}

thread_local! {
    /// Network through which the servers of one test reach each other. It is thread-local, because a test on
    /// paused time has a single-threaded runtime.
    static MEMORY: MemoryNet = MemoryNet::new();
}

impl Backend {
    /// Starts a server for a test that does not stop it, with a path of the test's own.
    ///
    /// # Panics
    ///
    /// Panics if the server does not start. For a real server the message names what to install.
    pub async fn start(self) -> TestServer {
        let options = ServerOptions::default();
        match self {
            Self::Memory => TestServer::embedded(&options, false, in_memory()).await,
            Self::As(dialect) => TestServer::embedded(&options.dialect(dialect), false, in_memory()).await,
            Self::Embedded => TestServer::embedded(&options, false, Net::Loopback).await,
            Self::Real => TestServer::shared().await,
        }
    }

    /// Starts a server that the test may [stop](TestServer::stop). A process starts one real server at a
    /// time: a test that asks for a second one waits forever.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start).
    pub async fn start_own(self) -> TestServer {
        self.start_own_with(ServerOptions::default()).await
    }

    /// Does the same as [`start_own`](Self::start_own), with options.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start).
    pub async fn start_own_with(self, options: ServerOptions) -> TestServer {
        match self {
            Self::Memory => TestServer::embedded(&options, true, in_memory()).await,
            Self::As(dialect) => TestServer::embedded(&options.dialect(dialect), true, in_memory()).await,
            Self::Embedded => TestServer::embedded(&options, true, Net::Loopback).await,
            Self::Real => TestServer::real(options).await,
        }
    }
}

fn in_memory() -> Net {
    Net::Memory(MEMORY.with(MemoryNet::clone))
}

/// Runs each test on both backends: always as `embedded::name`, in memory and on paused time, and as
/// `real::name` if ignored tests are requested, as `cargo xtask test` does. Use the macro once in a module,
/// for all its tests. The crate needs tokio with the features `macros`, `rt` and `test-util`.
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
        $crate::on_backends! { Memory, (start_paused = true), $($tests)+ }
    };
}

/// Does the same as [`both_backends`], with the embedded server on loopback and in real time, for tests of
/// sockets, processes and threads. The feature `test-util` is not necessary.
#[macro_export]
macro_rules! both_backends_in_real_time {
    ($($tests:tt)+) => {
        $crate::on_backends! { Embedded, (), $($tests)+ }
    };
}

/// Runs each test beside third-party programs, on both backends, as `embedded::name` and `real::name`. Both
/// are ignored unless requested, because the programs are [downloaded](crate::packages).
#[macro_export]
macro_rules! both_backends_with_packages {
    ($(async fn $name:ident($backend:ident: Backend) $body:block)+) => {
        $(async fn $name($backend: Backend) $body)+

        mod embedded {
            $(
                #[tokio::test]
                #[ignore = "downloads packages: run `cargo xtask test`"]
                async fn $name() {
                    super::$name($crate::Backend::Embedded).await;
                }
            )+
        }

        mod real {
            $(
                #[tokio::test]
                #[ignore = "needs a real ZooKeeper and downloads packages: run `cargo xtask test`"]
                async fn $name() {
                    super::$name($crate::Backend::Real).await;
                }
            )+
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! on_backends {
    ($embedded:ident, $time:tt,
     $($(#[$attribute:meta])* async fn $name:ident($backend:ident: $type:ty) $body:block)+) => {
        $(
            #[cfg(test)]
            #[allow(clippy::unwrap_used, reason = "this is the body of a test")]
            async fn $name($backend: $type) $body
        )+

        #[cfg(test)]
        mod embedded {
            $(
                $(#[$attribute])*
                #[tokio::test $time]
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
