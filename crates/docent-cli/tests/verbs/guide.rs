//! Runs the commands of the guides about the command line as they are written there.

use crate::docent_command::{PATIENCE, servers};
use docent::discovery::{Instance, Registry};
use docent::{Client, Mutex};
use docent_battery::{Backend, both_backends_in_real_time};
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

const GUIDES: [&str; 2] =
    [include_str!("../../../../docs/guide/command-line.md"), include_str!("../../../../docs/guide/views.md")];

/// Programs that the guide's commands run. Each prints that it ran; `orders` keeps running until it is asked
/// to end.
const PROGRAMS: [(&str, &str); 8] = [
    ("report.sh", "echo ran"),
    ("scheduler", "echo ran"),
    ("reload.sh", "echo \"ran with $APP_PER_SECOND at $APP_DB_HOST\""),
    ("orders", "echo ran; exec sleep 60"),
    ("restart.sh", "echo \"ran for $1\""),
    ("send.sh", "echo \"ran for $(cat)\""),
    ("nginx", "echo \"ran nginx $* with $(cat orders.conf)\""),
    ("systemctl", "echo \"ran systemctl $* with $(tr '\\n' ' ' < orders.cfg)\""),
];

/// A block of commands: whether it runs until a signal, and its text.
fn blocks() -> Vec<(bool, &'static str)> {
    let mut blocks = Vec::new();
    for part in GUIDES.iter().flat_map(|guide| guide.split("\n```sh").skip(1)) {
        let (info, rest) = part.split_once('\n').unwrap();
        let (code, _) = rest.split_once("\n```").unwrap();
        blocks.push((info.trim() == "endless", code));
    }
    blocks
}

/// Creates a folder with the programs.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, script) in PROGRAMS {
        let path = folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::write(folder.path().join("healthy"), "").unwrap();
    folder
}

/// Runs a block in a shell, and returns its output. A block that keeps running is ended once it has printed
/// that a program ran.
async fn run(connect: &str, folder: &Path, code: &str, is_endless: bool) -> String {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_docent"));
    let others = std::env::var("PATH").unwrap();
    let path = format!("{}:{}:{others}", program.parent().unwrap().display(), folder.display());
    let mut command = Command::new("sh");
    command.args(["-e", "-c", code]).current_dir(folder).env("PATH", path).env("DOCENT_CONNECT", connect);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let group = Pid::from_raw(child.id().unwrap().cast_signed()).unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut output = String::new();
    while let Some(line) = timeout(PATIENCE, lines.next_line()).await.expect("the run must continue").unwrap()
    {
        output += &format!("{line}\n");
        if is_endless && line.starts_with("ran") {
            kill_process_group(group, Signal::TERM).unwrap();
        }
    }
    let status = timeout(PATIENCE, child.wait()).await.expect("the shell must end").unwrap();
    assert!(is_endless || status.success(), "{code}\nended with {status}: {output}");
    output
}

both_backends_in_real_time! {
    async fn every_command_in_the_guide_works_verbatim(backend: Backend) {
        let server = backend.start().await;
        let (connect, folder) = (servers(&server), folder());
        let client = Client::builder(&connect).connect().await.unwrap();
        let guard = Mutex::new(&client, "/locks/nightly").unwrap().acquire().await.unwrap();
        let registry = Registry::new(&client, "/services").unwrap();
        let _other = registry.register(Instance::new("orders", "10.0.0.8", 8080).id("other")).await.unwrap();
        let mut output = String::new();
        for (is_endless, code) in blocks() {
            output += &run(&connect, folder.path(), code, is_endless).await;
        }
        for line in [
            "ran\n",
            "ran with 100 at db1\n",
            "100 requests per second at db1\n",
            "ran for 10.0.0.8:8080\n",
            "ran for first\n",
            "ran nginx -s reload with server 10.0.0.8:8080;\n",
            "ran systemctl reload haproxy with backend orders server other 10.0.0.8:8080 check",
            "/locks/nightly: mutex",
            "registers /services/orders",
            "unchanged  /config/limits",
            "serving",
        ] {
            assert!(output.contains(line), "{line:?} is missing in:\n{output}");
        }
        timeout(PATIENCE, guard.lost()).await.expect("the guide must have broken the lock");
        client.close().await;
    }
}
