//! The show, as a reader of the README would start it.

use crate::scene::PROGRAM;
use docent_battery::{Backend, ServerOptions, both_backends_in_real_time};
use std::process::{Output, Stdio};
use std::time::Duration;
use tokio::process::Command;
use tokio::time::timeout;

/// Tick that the shop takes a real ensemble to have.
const TICK: Duration = Duration::from_secs(2);

const PATIENCE: Duration = Duration::from_secs(180);

both_backends_in_real_time! {
    async fn the_show_says_what_the_caller_saw(backend: Backend) {
        let server = match backend {
            Backend::Memory | Backend::Embedded => None,
            Backend::Real => Some(backend.start_own_with(ServerOptions::default().tick(TICK)).await),
        };
        let mut command = Command::new(PROGRAM);
        command.env_remove("DOCENT_CONNECT").env_remove("RUST_LOG");
        command.envs(server.as_ref().map(|server| ("DOCENT_CONNECT", server.address().to_string())));
        command.stdin(Stdio::null()).kill_on_drop(true);
        let ended = timeout(PATIENCE, command.output()).await;
        let Output { status, stdout, stderr } = ended.expect("the show ends by itself").unwrap();
        let (said, complained) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        assert!(status.success(), "it ended with {status}:\n{said}\n{complained}");
        for part in ["SIGKILL", "SIGSTOP", "servers", "SIGTERM", "everything held"] {
            assert!(said.contains(part), "it does not say {part:?}:\n{said}");
        }
    }
}
