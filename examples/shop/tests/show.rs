//! The show, started like a reader of the README would start it.

use crate::scene::PROGRAM;
use docent_battery::{Backend, ServerOptions, both_backends_in_real_time};
use std::process::{Output, Stdio};
use std::time::Duration;
use tokio::process::Command;
use tokio::time::timeout;

/// Tick that the shop assumes for a real ensemble.
const TICK: Duration = Duration::from_secs(2);

const PATIENCE: Duration = Duration::from_secs(180);

both_backends_in_real_time! {
    async fn the_demo_prints_what_the_caller_saw(backend: Backend) {
        let server = match backend {
            Backend::Memory | Backend::Embedded | Backend::As(_) => None,
            Backend::Real => Some(backend.start_own_with(ServerOptions::default().tick(TICK)).await),
        };
        let mut command = Command::new(PROGRAM);
        command.env_remove("DOCENT_CONNECT").env_remove("RUST_LOG");
        command.envs(server.as_ref().map(|server| ("DOCENT_CONNECT", server.address().to_string())));
        command.stdin(Stdio::null()).kill_on_drop(true);
        let ended = timeout(PATIENCE, command.output()).await;
        let Output { status, stdout, stderr } = ended.expect("the show exits on its own").unwrap();
        let (output, errors) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        assert!(status.success(), "the show ended with {status}:\n{output}\n{errors}");
        for part in ["SIGKILL", "SIGSTOP", "servers", "SIGTERM", "all checks passed"] {
            assert!(output.contains(part), "the show does not print {part:?}:\n{output}");
        }
    }
}
