//! The shells that come with ZooKeeper, controlled line by line: `cli_mt` of its C client, and
//! `ZooKeeperMain`.

use crate::family::{Family, java};
use crate::for_clients;
use docent_battery::{Backend, Proxy, TestServer};
use docent_tests::PATIENCE;
use std::path::Path;
use std::process::Stdio;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

const CLI: &str = "/usr/lib/zookeeper/bin/cli_mt";

/// A running shell, behind its own proxy.
///
/// # On drop
///
/// The process is killed.
struct Shell {
    proxy: Proxy,
    input: ChildStdin,
    output: ChildStdout,
    /// Output that no test has consumed yet.
    printed: String,
    process: Child,
}

impl Shell {
    async fn start(family: Family, server: &TestServer) -> Self {
        let proxy = server.proxy().await;
        let address = format!("{}{}", proxy.connect_string(), server.root());
        let mut shell = match family {
            Family::Java => {
                let mut shell = java("org.apache.zookeeper.ZooKeeperMain").await;
                shell.args(["-server", &address]);
                shell
            }
            _ => {
                assert!(Path::new(CLI).is_file(), "{CLI} does not exist: install zookeeper-bin");
                let mut shell = Command::new(CLI);
                shell.args(["-h", &address]);
                shell
            }
        };
        // The shell writes to standard output and standard error. One pipe keeps the order.
        let (output, errors) = std::io::pipe().unwrap();
        shell.stdin(Stdio::piped()).stdout(errors.try_clone().unwrap()).stderr(errors);
        let mut process = shell.kill_on_drop(true).spawn().unwrap();
        let input = process.stdin.take().unwrap();
        let output = ChildStdout::from_std(std::os::fd::OwnedFd::from(output).into()).unwrap();
        Self { proxy, input, output, printed: String::new(), process }
    }

    /// Sends a line, and waits until the shell has printed all of these texts in this order.
    async fn run(&mut self, line: &str, expected: &[&str]) {
        self.input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        for text in expected {
            self.until_printed(text).await;
        }
    }

    /// Waits until the shell has exited successfully. Its last output may be lost, because the shell exits
    /// while another thread is printing.
    async fn ends(mut self) {
        let ended = timeout(PATIENCE, self.process.wait()).await.unwrap().unwrap();
        assert!(ended.success(), "{ended}");
    }

    /// Waits until the shell prints this text.
    async fn until_printed(&mut self, text: &str) {
        let mut piece = [0; 4096];
        while !self.printed.contains(text) {
            let read = timeout(PATIENCE, self.output.read(&mut piece)).await;
            let read = read.map_or(0, Result::unwrap);
            assert!(read > 0, "the shell ended without printing {text:?}: {:?}", self.printed);
            self.printed.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
        let end = self.printed.find(text).unwrap() + text.len();
        self.printed.drain(..end);
    }
}

for_clients! {
    [C] async fn the_shell_of_the_c_client_works(family: Family, backend: Backend) {
        let server = backend.start().await;
        let mut shell = Shell::start(family, &server).await;
        shell.until_printed("CONNECTED_STATE").await;
        shell.run("create /a", &["[/a]: rc = 0", "name = /a"]).await;
        shell.run("create +e /a/mine", &["[/a/mine]: rc = 0"]).await;
        shell.run("create2 +s /a/line-", &["[/a/line-]: rc = 0", "/a/line-0000000001", "czxid"]).await;
        shell.run("create +c /box", &["[/box]: rc = 0"]).await;
        shell.run("ls /a", &["/a: rc = 0", "time ="]).await;
        shell.run("get /a", &["value_len = 3", "new", "version=0"]).await;
        shell.run("set /a other", &["CHANGED_EVENT", "for path /a", "version=1"]).await;
        shell.run("wexists /b", &["-101"]).await;
        shell.run("create /b", &["CREATED_EVENT", "for path /b"]).await;
        shell.run("ls /a", &["/a: rc = 0"]).await;
        shell.run("delete /a/mine", &["CHILD_EVENT", "for path /a", "/a/mine: rc = 0"]).await;
        shell.run("delete /a", &["/a: rc = -111"]).await;
        shell.run("get /nowhere", &["/nowhere: rc = -101"]).await;
        shell.run("create +t=1000 /later", &["[/later]: rc = -6"]).await;
        shell.run("addauth digest alice:secret", &[]).await;
        shell.run("sync /", &["[/]: rc = 0"]).await;
        shell.run("config", &["/zookeeper/config: rc = 0"]).await;

        shell.run("exists /b", &[]).await;
        shell.run("sync /", &["[/]: rc = 0"]).await;
        shell.proxy.reset().await;
        shell.until_printed("CONNECTED_STATE").await;
        shell.run("set /b other", &["CHANGED_EVENT", "for path /b", "version=1"]).await;
        shell.run("quit", &["Quitting"]).await;
    }

    [Java] async fn the_java_shell_works(family: Family, backend: Backend) {
        let server = backend.start().await;
        let mut shell = Shell::start(family, &server).await;
        shell.until_printed("SyncConnected").await;
        shell.run("create /a one", &["Created /a"]).await;
        shell.run("create -e /a/mine x", &["Created /a/mine"]).await;
        shell.run("create -s /a/line- x", &["Created /a/line-0000000001"]).await;
        shell.run("ls -R /", &["/a\n", "/a/line-0000000001\n", "/a/mine\n"]).await;
        shell.run("get -s /a", &["one", "cversion = 2", "dataLength = 3", "numChildren = 2"]).await;
        shell.run("stat -w /a", &["numChildren = 2"]).await;
        shell.run("set /a two", &["NodeDataChanged path:/a"]).await;
        shell.run("addWatch -m PERSISTENT_RECURSIVE /a", &[]).await;
        shell.run("create /a/b x", &["NodeCreated path:/a/b"]).await;
        shell.run("removewatches /a", &["PersistentWatchRemoved path:/a"]).await;
        shell.run("addauth digest alice:secret", &[]).await;
        shell.run("whoami", &["digest: alice"]).await;
        shell.run("setAcl /a auth::cdrwa", &[]).await;
        shell.run("getAcl /a", &["'digest,'alice:", ": cdrwa"]).await;
        shell.run("create -c /box", &["Created /box"]).await;
        shell.run("create -t 5000 /later", &["Unimplemented"]).await;
        shell.run("getAllChildrenNumber /a", &["3"]).await;
        shell.run("getEphemerals /", &["/a/mine]"]).await;
        shell.run("sync /", &["Sync is OK"]).await;
        shell.run("get /nowhere", &["Node does not exist: /nowhere"]).await;
        shell.run("reconfig -add 1=2", &["Reconfig is disabled"]).await;
        shell.run("deleteall /a", &[]).await;
        shell.run("ls /", &["[box]"]).await;

        shell.proxy.reset().await;
        shell.until_printed("Disconnected").await;
        shell.until_printed("SyncConnected").await;
        shell.run("create /a again", &["Created /a"]).await;
        shell.run("quit", &[]).await;
        shell.ends().await;
    }
}
