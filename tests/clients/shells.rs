//! The shells that come with ZooKeeper, fed line by line: `cli_mt` of its C client, and `ZooKeeperMain`.

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

/// Shell at work, behind a proxy of its own.
///
/// # On drop
/// The process is killed.
struct Shell {
    proxy: Proxy,
    input: ChildStdin,
    output: ChildStdout,
    /// Text from it that no test has looked at yet.
    said: String,
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
                assert!(Path::new(CLI).is_file(), "no {CLI}: install zookeeper-bin");
                let mut shell = Command::new(CLI);
                shell.args(["-h", &address]);
                shell
            }
        };
        // It writes to both of its outputs: in their order, they are one.
        let (output, errors) = std::io::pipe().unwrap();
        shell.stdin(Stdio::piped()).stdout(errors.try_clone().unwrap()).stderr(errors);
        let mut process = shell.kill_on_drop(true).spawn().unwrap();
        let input = process.stdin.take().unwrap();
        let output = ChildStdout::from_std(std::os::fd::OwnedFd::from(output).into()).unwrap();
        Self { proxy, input, output, said: String::new(), process }
    }

    /// Gives it a line, and waits until it has said all of this, in this order.
    async fn told(&mut self, line: &str, expected: &[&str]) {
        self.input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        for text in expected {
            self.says(text).await;
        }
    }

    /// Waits until it has ended well. Its last words may be lost: it ends beside the thread that has them.
    async fn ends(mut self) {
        let ended = timeout(PATIENCE, self.process.wait()).await.unwrap().unwrap();
        assert!(ended.success(), "{ended}");
    }

    /// Waits until it says this.
    async fn says(&mut self, text: &str) {
        let mut piece = [0; 4096];
        while !self.said.contains(text) {
            let read = timeout(PATIENCE, self.output.read(&mut piece)).await;
            let read = read.map_or(0, Result::unwrap);
            assert!(read > 0, "it does not say {text:?} but {:?}", self.said);
            self.said.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
        let end = self.said.find(text).unwrap() + text.len();
        self.said.drain(..end);
    }
}

for_clients! {
    [C] async fn the_shell_of_the_c_client_works(family: Family, backend: Backend) {
        let server = backend.start().await;
        let mut shell = Shell::start(family, &server).await;
        shell.says("CONNECTED_STATE").await;
        shell.told("create /a", &["[/a]: rc = 0", "name = /a"]).await;
        shell.told("create +e /a/mine", &["[/a/mine]: rc = 0"]).await;
        shell.told("create2 +s /a/line-", &["[/a/line-]: rc = 0", "/a/line-0000000001", "czxid"]).await;
        shell.told("create +c /box", &["[/box]: rc = 0"]).await;
        shell.told("ls /a", &["/a: rc = 0", "time ="]).await;
        shell.told("get /a", &["value_len = 3", "new", "version=0"]).await;
        shell.told("set /a other", &["CHANGED_EVENT", "for path /a", "version=1"]).await;
        shell.told("wexists /b", &["-101"]).await;
        shell.told("create /b", &["CREATED_EVENT", "for path /b"]).await;
        shell.told("ls /a", &["/a: rc = 0"]).await;
        shell.told("delete /a/mine", &["CHILD_EVENT", "for path /a", "/a/mine: rc = 0"]).await;
        shell.told("delete /a", &["/a: rc = -111"]).await;
        shell.told("get /nowhere", &["/nowhere: rc = -101"]).await;
        shell.told("create +t=1000 /later", &["[/later]: rc = -6"]).await;
        shell.told("addauth digest alice:secret", &[]).await;
        shell.told("sync /", &["[/]: rc = 0"]).await;
        shell.told("config", &["/zookeeper/config: rc = 0"]).await;

        shell.told("exists /b", &[]).await;
        shell.told("sync /", &["[/]: rc = 0"]).await;
        shell.proxy.reset().await;
        shell.says("CONNECTED_STATE").await;
        shell.told("set /b other", &["CHANGED_EVENT", "for path /b", "version=1"]).await;
        shell.told("quit", &["Quitting"]).await;
    }

    [Java] async fn the_java_shell_works(family: Family, backend: Backend) {
        let server = backend.start().await;
        let mut shell = Shell::start(family, &server).await;
        shell.says("SyncConnected").await;
        shell.told("create /a one", &["Created /a"]).await;
        shell.told("create -e /a/mine x", &["Created /a/mine"]).await;
        shell.told("create -s /a/line- x", &["Created /a/line-0000000001"]).await;
        shell.told("ls -R /", &["/a\n", "/a/line-0000000001\n", "/a/mine\n"]).await;
        shell.told("get -s /a", &["one", "cversion = 2", "dataLength = 3", "numChildren = 2"]).await;
        shell.told("stat -w /a", &["numChildren = 2"]).await;
        shell.told("set /a two", &["NodeDataChanged path:/a"]).await;
        shell.told("addWatch -m PERSISTENT_RECURSIVE /a", &[]).await;
        shell.told("create /a/b x", &["NodeCreated path:/a/b"]).await;
        shell.told("removewatches /a", &["PersistentWatchRemoved path:/a"]).await;
        shell.told("addauth digest alice:secret", &[]).await;
        shell.told("whoami", &["digest: alice"]).await;
        shell.told("setAcl /a auth::cdrwa", &[]).await;
        shell.told("getAcl /a", &["'digest,'alice:", ": cdrwa"]).await;
        shell.told("create -c /box", &["Created /box"]).await;
        shell.told("create -t 5000 /later", &["Unimplemented"]).await;
        shell.told("getAllChildrenNumber /a", &["3"]).await;
        shell.told("getEphemerals /", &["/a/mine]"]).await;
        shell.told("sync /", &["Sync is OK"]).await;
        shell.told("get /nowhere", &["Node does not exist: /nowhere"]).await;
        shell.told("reconfig -add 1=2", &["Reconfig is disabled"]).await;
        shell.told("deleteall /a", &[]).await;
        shell.told("ls /", &["[box]"]).await;

        shell.proxy.reset().await;
        shell.says("Disconnected").await;
        shell.says("SyncConnected").await;
        shell.told("create /a again", &["Created /a"]).await;
        shell.told("quit", &[]).await;
        shell.ends().await;
    }
}
