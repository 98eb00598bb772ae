use super::Missing;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const DEBIAN_JARS: &str = "/usr/share/java";

/// Jars needed besides `zookeeper.jar`, whose manifest names the other dependencies: Jute, a log backend, and
/// two jars for TLS.
const DEBIAN_EXTRAS: [&str; 4] =
    ["zookeeper-jute.jar", "slf4j-simple.jar", "netty-codec.jar", "netty-resolver.jar"];

/// The Java runtime and the class path of ZooKeeper.
#[derive(Debug, Clone)]
pub struct Java {
    pub(super) program: PathBuf,
    pub(super) class_path: OsString,
}

impl Java {
    /// Finds ZooKeeper in `ZOOKEEPER_HOME` if that is set, otherwise where Debian's packages install it.
    ///
    /// # Errors
    /// [`Missing`] with what to install.
    pub fn find() -> Result<Self, Missing> {
        let class_path = match env::var_os("ZOOKEEPER_HOME") {
            Some(home) => distribution(Path::new(&home))?,
            None => debian(Path::new(DEBIAN_JARS))?,
        };
        Ok(Self { program: program().ok_or(Missing::Java)?, class_path })
    }

    /// Returns a command that runs Java with this class path. The caller appends the name of the class.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("-cp").arg(&self.class_path);
        command
    }
}

fn program() -> Option<PathBuf> {
    let home = env::var_os("JAVA_HOME").map(|home| Path::new(&home).join("bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    home.into_iter()
        .chain(env::split_paths(&path))
        .map(|folder| folder.join("java"))
        .find(|java| java.is_file())
}

fn debian(folder: &Path) -> Result<OsString, Missing> {
    let jar = folder.join("zookeeper.jar");
    if !jar.is_file() {
        return Err(Missing::Debian(jar));
    }
    let extras = DEBIAN_EXTRAS.iter().map(|name| folder.join(name)).filter(|jar| jar.is_file());
    Ok(join(std::iter::once(jar).chain(extras)))
}

fn distribution(home: &Path) -> Result<OsString, Missing> {
    let mut jars: Vec<PathBuf> =
        [home.join("lib"), home.to_owned()].iter().flat_map(|folder| jars(folder)).collect();
    jars.sort();
    let is_server = |jar: &PathBuf| {
        let name = jar.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("zookeeper-") && !name.starts_with("zookeeper-jute")
    };
    if jars.iter().any(is_server) { Ok(join(jars)) } else { Err(Missing::Home(home.to_owned())) }
}

fn jars(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let files = entries.filter_map(Result::ok).map(|entry| entry.path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "jar")).collect()
}

fn join(jars: impl IntoIterator<Item = PathBuf>) -> OsString {
    jars.into_iter().map(PathBuf::into_os_string).collect::<Vec<_>>().join(":".as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_the_jar_is_named_together_with_what_to_install() {
        let folder = tempfile::tempdir().unwrap();
        let text = debian(folder.path()).unwrap_err().to_string();
        assert!(text.contains(folder.path().to_str().unwrap()), "{text}");
        assert!(
            text.contains("install libzookeeper-java and default-jre-headless, or set ZOOKEEPER_HOME"),
            "{text}"
        );
    }

    #[test]
    fn all_jars_of_a_binary_distribution_are_on_the_class_path() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("lib")).unwrap();
        for name in ["zookeeper-3.9.2.jar", "zookeeper-jute-3.9.2.jar", "slf4j-api.jar", "README.txt"] {
            fs::write(home.path().join("lib").join(name), "").unwrap();
        }
        let class_path = distribution(home.path()).unwrap().into_string().unwrap();
        assert_eq!(class_path.split(':').count(), 3, "{class_path}");
    }

    #[test]
    fn a_home_with_nothing_but_the_jute_jar_is_refused() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("zookeeper-jute-3.9.2.jar"), "").unwrap();
        assert_eq!(distribution(home.path()), Err(Missing::Home(home.path().to_owned())));
    }
}
