use super::java::Java;
use super::process::{Process, Watchdog};
use super::{Missing, StartError};
use crate::options::ServerOptions;
use crate::ports::Port;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, thread};
use tokio::sync::OnceCell;

const STANDALONE: &str = "org.apache.zookeeper.server.ZooKeeperServerMain";
const MEMBER: &str = "org.apache.zookeeper.server.quorum.QuorumPeerMain";
const START_LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);
const LOG_TAIL: usize = 2_000;
/// Number of attempts to start on a free port. A process that does not use claims may take the port between
/// the check and the start.
pub(super) const PORT_ATTEMPTS: usize = 3;

static SHARED: OnceCell<RealServer> = OnceCell::const_new();

/// A real ZooKeeper server: a Java process on a free loopback port, with its own data folder. It runs
/// standalone, or as a member of an ensemble.
///
/// # On drop
/// The process is killed (SIGKILL) and its folder is removed, also after a panic. The same happens if the
/// process that started it ends without dropping the value, even if it is killed.
///
/// # Examples
/// A test that is skipped with a message if ZooKeeper is not installed:
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use docent_core::Client;
/// # use docent_testkit::RealServer;
/// if let Err(missing) = RealServer::available() {
///     eprintln!("skipped: {missing}");
///     return Ok(());
/// }
/// let server = RealServer::start().await?;
/// let client = Client::connect(server.connect_string()).await?;
/// client.exists("/").await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct RealServer {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    // Dropped in this order: the process ends before its folder is removed and its ports are released.
    process: Mutex<Option<Process>>,
    _watchdog: Watchdog,
    java: Java,
    options: ServerOptions,
    folder: PathBuf,
    port: Port,
    secure_port: Option<Port>,
    /// `None` if the server is standalone.
    membership: Option<Membership>,
}

/// Membership of a server in an ensemble.
#[derive(Debug)]
pub(super) struct Membership {
    /// Number of the server, starting at 1.
    pub(super) id: usize,
    /// The configuration lines that name the members.
    pub(super) members: String,
    /// Ports for communicating with the other servers and for votes.
    pub(super) _ports: [Port; 2],
}

impl RealServer {
    /// Checks whether a real server can be started on this machine.
    ///
    /// # Errors
    /// The missing software, and how to get it.
    pub fn available() -> Result<(), Missing> {
        Java::find().map(|_| ())
    }

    /// Starts a server and waits until it serves, at most a minute. Its tick is 200 ms, and it grants session
    /// timeouts from 400 ms to 60 s. The method does not block threads of the runtime.
    ///
    /// # Errors
    /// If ZooKeeper is not installed or does not start, with the end of its log.
    ///
    /// # Cancel safety
    /// This function is cancel safe. A server that starts later is killed immediately.
    pub async fn start() -> Result<Self, StartError> {
        Self::start_with(ServerOptions::default()).await
    }

    /// Starts a server with options and waits until it serves.
    ///
    /// # Errors
    /// If ZooKeeper is not installed or does not start.
    #[doc(hidden)]
    pub async fn start_with(options: ServerOptions) -> Result<Self, StartError> {
        blocking(move || {
            let java = Java::find()?;
            let mut attempt = 1;
            loop {
                match Self::start_alone(&java, &options) {
                    Err(StartError::Ended { .. }) if attempt < PORT_ATTEMPTS => attempt += 1,
                    started => return started,
                }
            }
        })
        .await
    }

    fn start_alone(java: &Java, options: &ServerOptions) -> Result<Self, StartError> {
        let server = Self::prepare(java, options, None)?;
        server.inner.launch()?;
        server.inner.until_it_serves()?;
        Ok(server)
    }

    /// Creates a server without starting it.
    pub(super) fn prepare(
        java: &Java,
        options: &ServerOptions,
        membership: Option<Membership>,
    ) -> Result<Self, StartError> {
        Ok(Self { inner: Arc::new(Inner::prepare(java, options, membership)?) })
    }

    /// Starts the process without waiting until it serves. An earlier process is killed first. The method
    /// blocks briefly.
    pub(super) fn launch(&self) -> Result<(), StartError> {
        self.inner.launch()
    }

    /// Blocks until the server serves. For a member of an ensemble, this requires a quorum.
    pub(super) fn until_it_serves(&self) -> Result<(), StartError> {
        self.inner.until_it_serves()
    }

    /// Returns the mode that the server reports: `standalone`, `leader` or `follower`; `None` if it does not
    /// serve.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn mode(&self) -> Option<String> {
        let server = Self { inner: Arc::clone(&self.inner) };
        blocking(move || Ok(server.mode_now())).await.unwrap_or_default()
    }

    /// Does the same as [`mode`](Self::mode), but blocks briefly.
    pub(super) fn mode_now(&self) -> Option<String> {
        let answer = ask(self.address(), "srvr").ok()?;
        answer.lines().find_map(|line| line.strip_prefix("Mode: ")).map(str::to_owned)
    }

    /// Returns the server that all tests of this process share. The first call starts it, and it ends with
    /// the process. Tests use separate paths, and must leave it running.
    ///
    /// # Errors
    /// See [`start`](Self::start). After an error, the next call tries again.
    ///
    /// # Cancel safety
    /// See [`start`](Self::start).
    pub async fn shared() -> Result<&'static Self, StartError> {
        SHARED.get_or_try_init(Self::start).await
    }

    /// Returns the address for clients: `host:port`.
    pub fn connect_string(&self) -> String {
        self.address().to_string()
    }

    /// Returns the address that the server listens on. It does not change over restarts.
    pub fn address(&self) -> SocketAddr {
        self.inner.port.address()
    }

    /// Returns the address that the server listens on for TLS, if its options enable it.
    #[doc(hidden)]
    pub fn secure_address(&self) -> Option<SocketAddr> {
        self.inner.secure_address()
    }

    /// Returns the folder of the server's data, configuration and log.
    pub fn folder(&self) -> &Path {
        &self.inner.folder
    }

    /// Returns the process id; `None` while the server is stopped.
    pub fn pid(&self) -> Option<u32> {
        self.inner.process().as_ref().map(Process::id)
    }

    /// Kills the process (SIGKILL). Port and data are kept for [`start_again`](Self::start_again).
    pub fn stop(&self) {
        self.inner.process().take();
    }

    /// Starts a stopped server on the same port and data, and waits until it serves. A running server is
    /// killed first. A member of an ensemble serves once there is a quorum.
    ///
    /// # Errors
    /// If the server does not serve within a minute, with the end of its log.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the server is started in any case, and may not serve yet.
    pub async fn start_again(&self) -> Result<(), StartError> {
        let inner = Arc::clone(&self.inner);
        blocking(move || {
            inner.launch()?;
            inner.until_it_serves()
        })
        .await
    }

    /// Suspends the process (SIGSTOP): connections stay open, and nothing is answered.
    ///
    /// # Errors
    /// If the server is not running.
    pub fn freeze(&self) -> io::Result<()> {
        self.inner.signal("STOP")
    }

    /// Resumes a suspended process (SIGCONT).
    ///
    /// # Errors
    /// If the server is not running.
    pub fn thaw(&self) -> io::Result<()> {
        self.inner.signal("CONT")
    }
}

impl Inner {
    fn prepare(
        java: &Java,
        options: &ServerOptions,
        membership: Option<Membership>,
    ) -> Result<Self, StartError> {
        let port = Port::claim()?;
        let secure_port = options.secure_port.then(Port::claim).transpose()?;
        let parent = options.parent_folder.clone().unwrap_or_else(std::env::temp_dir);
        let folder = tempfile::Builder::new().prefix("docent-zookeeper-").tempdir_in(parent)?;
        let watchdog = Watchdog::over(folder.path())?;
        // From here on, the watchdog removes the folder.
        let folder = folder.keep();
        let inner = Self {
            process: Mutex::new(None),
            _watchdog: watchdog,
            java: java.clone(),
            options: options.clone(),
            folder,
            port,
            secure_port,
            membership,
        };
        inner.configure()?;
        Ok(inner)
    }

    fn configure(&self) -> io::Result<()> {
        let data = self.data();
        fs::create_dir(&data)?;
        let mut config = self.options.config(self.port.address(), self.secure_address(), &data);
        if let Some(membership) = &self.membership {
            fs::write(data.join("myid"), membership.id.to_string())?;
            config.push_str(&membership.members);
        }
        fs::write(self.jaas_file(), self.options.jaas())?;
        fs::write(self.config_file(), config)
    }

    fn secure_address(&self) -> Option<SocketAddr> {
        self.secure_port.as_ref().map(Port::address)
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn jaas_file(&self) -> PathBuf {
        self.folder.join("jaas.conf")
    }

    fn config_file(&self) -> PathBuf {
        self.folder.join("zoo.cfg")
    }

    fn launch(&self) -> Result<(), StartError> {
        let mut arguments: Vec<OsString> =
            self.options.java_arguments(&self.jaas_file()).into_iter().map(OsString::from).collect();
        let main_class = if self.membership.is_some() { MEMBER } else { STANDALONE };
        arguments.extend(["-cp".into(), self.java.class_path.clone(), main_class.into()]);
        arguments.push(self.config_file().into());
        let mut running = self.process();
        // The old process must end before the new one binds the port.
        running.take();
        *running = Some(Process::launch(&self.folder, &self.java.program, &arguments)?);
        Ok(())
    }

    fn until_it_serves(&self) -> Result<(), StartError> {
        let started = Instant::now();
        while !serves(self.port.address(), &self.data()) {
            match self.process().as_mut().map(Process::ended).transpose()? {
                Some(None) => {}
                Some(Some(status)) => return Err(StartError::Ended { status, log: self.log_tail() }),
                None => return Err(StartError::Stopped),
            }
            if started.elapsed() > START_LIMIT {
                return Err(StartError::Late { seconds: START_LIMIT.as_secs(), log: self.log_tail() });
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    fn log_tail(&self) -> String {
        let log = fs::read(self.folder.join("log")).unwrap_or_default();
        String::from_utf8_lossy(&log[log.len().saturating_sub(LOG_TAIL)..]).into_owned()
    }

    fn signal(&self, name: &str) -> io::Result<()> {
        match self.process().as_ref() {
            Some(process) => process.signal(name),
            None => Err(io::Error::other("the server is stopped")),
        }
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether the server at `address` uses the folder `data` and reports that it serves requests.
fn serves(address: SocketAddr, data: &Path) -> bool {
    let says = |word, what: &str| ask(address, word).is_ok_and(|answer| answer.contains(what));
    says("srvr", "Mode:") && says("conf", &format!("dataDir={}/", data.display()))
}

fn ask(address: SocketAddr, word: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    stream.write_all(word.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Runs a function that blocks for seconds outside the runtime's own threads, on which a proxy of the same
/// test would stall.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StartError> + Send + 'static,
) -> Result<T, StartError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => Err(io::Error::other(error).into()),
        },
    }
}
