use docent_testkit::{Port, eventually};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::TcpStream;

/// Maximum wait for the KDC to listen, and for a ticket to expire.
pub const PATIENCE: Duration = Duration::from_secs(60);

const REALM: &str = "TEST.DOCENT";

/// Starts a KDC, prints its process id, and kills it when standard input is closed, also because the test
/// process was killed.
const KDC: &str = "krb5kdc -n >/dev/null 2>&1 </dev/null & echo $!; read end; kill -9 $!";

/// A Kerberos realm with a KDC on a free port of the loopback interface, and all files in one folder. With
/// the configuration `down.conf` in place of `krb5.conf`, nothing listens at the KDC's address. With
/// `canonical.conf`, the library asks for the canonical names of hosts, as it does by default.
///
/// # On drop
/// The KDC is killed, and the files are deleted.
pub struct Realm {
    // Dropped first.
    kdc: Option<Kdc>,
    folder: TempDir,
    port: Port,
}

struct Kdc {
    shell: Child,
    pid: String,
}

impl Realm {
    /// Creates a realm, and starts its KDC.
    pub async fn start() -> Self {
        let mut realm = Self { kdc: None, folder: TempDir::new().unwrap(), port: Port::claim().unwrap() };
        let (address, folder) = (realm.port.address(), realm.folder.path().display().to_string());
        // The KDC listens on TCP only, because the claim of the port holds its UDP.
        let client = |kdc: &dyn std::fmt::Display, canonical: bool| {
            format!(
                "[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n dns_lookup_realm = false\n \
                 dns_canonicalize_hostname = {canonical}\n rdns = {canonical}\n udp_preference_limit = 1\n\
                 [realms]\n {REALM} = {{\n  kdc = {kdc}\n }}\n\
                 [domain_realm]\n localhost = {REALM}\n\
                 [logging]\n kdc = FILE:{folder}/log\n admin_server = FILE:{folder}/log\n"
            )
        };
        fs::write(realm.path("krb5.conf"), client(&address, false)).unwrap();
        fs::write(realm.path("canonical.conf"), client(&address, true)).unwrap();
        fs::write(realm.path("down.conf"), client(&"127.0.0.1:1", false)).unwrap();
        fs::write(
            realm.path("kdc.conf"),
            format!(
                "[kdcdefaults]\n kdc_listen = \"\"\n kdc_tcp_listen = {address}\n\
                 [realms]\n {REALM} = {{\n  database_name = {folder}/principal\n  key_stash_file = {folder}/stash\n  \
                 acl_file = {folder}/acl\n }}\n"
            ),
        )
        .unwrap();
        realm.run("kdb5_util", &["create", "-s", "-r", REALM, "-P", "master"]);
        realm.start_kdc().await;
        realm
    }

    /// Returns the path of a file in the realm's folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Adds principals with random keys. Returns a keytab with their keys.
    pub fn add(&self, principals: &[&str]) -> PathBuf {
        let keytab = self.path(&format!("{}.keytab", principals[0].replace('/', "-")));
        for principal in principals {
            self.run("kadmin.local", &["-r", REALM, "addprinc", "-randkey", principal]);
            self.run("kadmin.local", &["-r", REALM, "ktadd", "-k", keytab.to_str().unwrap(), principal]);
        }
        keytab
    }

    /// Gives a principal a new key, which replaces those in a keytab.
    pub fn rotate(&self, principal: &str, keytab: &Path) {
        fs::remove_file(keytab).unwrap();
        self.run("kadmin.local", &["-r", REALM, "ktadd", "-k", keytab.to_str().unwrap(), principal]);
    }

    /// Removes a principal.
    pub fn remove(&self, principal: &str) {
        self.run("kadmin.local", &["-r", REALM, "delprinc", "-force", principal]);
    }

    /// Puts a ticket into the credential cache `cache`.
    pub fn kinit(&self, principal: &str, keytab: &Path, cache: &Path, lifetime: &str) {
        let (keytab, cache) = (keytab.to_str().unwrap(), cache.to_str().unwrap());
        self.run("kinit", &["-k", "-t", keytab, "-c", cache, "-l", lifetime, principal]);
    }

    /// Waits until the tickets in a cache have expired.
    pub async fn expire(&self, cache: &Path) {
        let has_ticket = async || self.command("klist").arg("-s").arg(cache).status().unwrap().success();
        eventually(PATIENCE, has_ticket, |has_ticket| !has_ticket).await.unwrap();
    }

    /// Starts the KDC, and waits until it listens.
    async fn start_kdc(&mut self) {
        let mut shell = self
            .command("sh")
            .args(["-c", KDC])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut pid = String::new();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut pid).unwrap();
        self.kdc = Some(Kdc { shell, pid: pid.trim().to_owned() });
        let address = self.port.address();
        let connect = async || TcpStream::connect(address).await.map(|_| ()).map_err(|error| error.kind());
        if let Err(error) = eventually(PATIENCE, connect, Result::is_ok).await {
            panic!("the KDC does not listen: {error}: {:?}", fs::read_to_string(self.path("log")));
        }
    }

    /// Suspends the KDC: connections are accepted, and nothing is answered.
    pub fn freeze_kdc(&self) {
        self.signal("-STOP");
    }

    /// Resumes the KDC.
    pub fn thaw_kdc(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let pid = &self.kdc.as_ref().expect("a KDC that runs").pid;
        self.run("kill", &[signal, pid]);
    }

    fn run(&self, program: &str, args: &[&str]) {
        let output = self.command(program).args(args).stdin(Stdio::null()).output();
        let output = output.unwrap_or_else(|error| {
            panic!("{program}: {error}; install krb5-kdc, krb5-admin-server and krb5-user")
        });
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{program} {args:?}: {text}");
    }

    /// Returns a command with the realm's configuration. Debian has the servers in `/usr/sbin`.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
        command.env("KRB5_CONFIG", self.path("krb5.conf")).env("KRB5_KDC_PROFILE", self.path("kdc.conf"));
        command
    }
}

impl Drop for Kdc {
    fn drop(&mut self) {
        // Closes standard input.
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}
