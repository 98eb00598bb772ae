//! A web server of a test.

use axum::Router;
use docent::Client;
use docent_console::{Console, ConsoleBuilder};
use std::net::{SocketAddr, TcpListener};
use tokio::runtime::{self, Runtime};

/// A web server on loopback.
///
/// # On drop
///
/// The server stops, and its connections are closed.
pub(crate) struct Site {
    address: SocketAddr,
    router: Router,
    /// Runtime of the server and of all connections, while it runs.
    running: Option<Runtime>,
}

impl Site {
    /// Starts a server on a free port.
    pub(crate) fn serve(router: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let running = Some(run(listener, router.clone()));
        Self { address, router, running }
    }

    /// Starts a console of everything that `client` sees.
    pub(crate) fn console(client: &Client, set_up: impl FnOnce(ConsoleBuilder) -> ConsoleBuilder) -> Self {
        Self::serve(set_up(Console::builder(client)).build().unwrap().router())
    }

    /// Stops the server and closes its connections.
    pub(crate) fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.shutdown_background();
        }
    }

    /// Starts a stopped server on the same port.
    pub(crate) fn start_again(&mut self) {
        let listener = TcpListener::bind(self.address).expect("the port is still free");
        self.running = Some(run(listener, self.router.clone()));
    }

    /// The origin of its pages.
    pub(crate) fn origin(&self) -> String {
        self.origin_at("127.0.0.1")
    }

    /// The origin of its pages under another name of loopback.
    pub(crate) fn origin_at(&self, host: &str) -> String {
        format!("http://{host}:{}", self.address.port())
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run(listener: TcpListener, router: Router) -> Runtime {
    let running = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    listener.set_nonblocking(true).unwrap();
    running.spawn(async move {
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        axum::serve(listener, service).await.unwrap();
    });
    running
}
