//! Ports stay reserved for their servers, even on a busy machine while nothing listens on them.

use docent_battery::Proxy;
use docent_server::Server;
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

const ROUNDS: usize = 300;

/// Starts one process after the other until it is dropped. Between fork and exec each process has every file
/// of this process open, including listeners.
struct Forks {
    enough: Arc<AtomicBool>,
    starts: Option<JoinHandle<()>>,
}

impl Forks {
    fn start() -> Self {
        let enough = Arc::<AtomicBool>::default();
        let asked = Arc::clone(&enough);
        let starts = thread::spawn(move || {
            while !asked.load(Ordering::Relaxed) {
                let child = Command::new("true").current_dir("/").process_group(0).spawn();
                child.and_then(|mut child| child.wait()).expect("a process can be started");
            }
        });
        Self { enough, starts: Some(starts) }
    }
}

impl Drop for Forks {
    fn drop(&mut self) {
        self.enough.store(true, Ordering::Relaxed);
        let ended = self.starts.take().map(JoinHandle::join);
        assert!(ended.is_none_or(|ended| ended.is_ok()));
    }
}

#[tokio::test]
async fn a_proxy_takes_links_again_on_its_port_while_processes_are_started() {
    let server = Server::start().await.unwrap();
    let proxy = Proxy::start(server.local_addr()).await.unwrap();
    let _forks = Forks::start();
    for _ in 0..ROUNDS {
        proxy.cut().await;
        assert!(TcpStream::connect(proxy.address()).is_err());
        proxy.heal().await.unwrap();
    }
}

#[tokio::test]
async fn a_server_listens_again_on_its_port_while_processes_are_started() {
    let server = Server::start().await.unwrap();
    let _forks = Forks::start();
    for _ in 0..ROUNDS {
        server.stop_listening().await.unwrap();
        assert!(TcpStream::connect(server.local_addr()).is_err());
        server.listen_again().await.unwrap();
    }
}
