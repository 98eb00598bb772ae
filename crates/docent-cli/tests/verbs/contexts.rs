//! `docent contexts`. No server is contacted.

use crate::docent_command::{Ended, docent, end};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

const FILE: &str = "# servers of the shop
current = 'local' # for now

[contexts.local]
connect = \"127.0.0.1:2181\"

[contexts.shop]
connect = \"zk1:2181,zk2:2181/shop\" # two of them
namespace = \"/blue\"
";

async fn contexts(file: &Path, arguments: &[&str]) -> Ended {
    let mut command = docent("", ["contexts"].iter().chain(arguments));
    end(command.env("DOCENT_CONTEXTS", file).spawn().unwrap()).await
}

#[tokio::test]
async fn contexts_are_listed_and_the_current_one_is_marked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("contexts.toml");
    fs::write(&file, FILE).unwrap();
    let table = contexts(&file, &["list"]).await.ok().stdout;
    let rows: Vec<Vec<_>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        rows[1..],
        [vec!["*", "local", "127.0.0.1:2181"], vec!["shop", "zk1:2181,zk2:2181/shop", "/blue"]]
    );
    let json = contexts(&file, &["list", "-o", "json"]).await.ok().json();
    assert_eq!(
        (&json[0]["is_current"], &json[1]["connect"]),
        (&true.into(), &"zk1:2181,zk2:2181/shop".into())
    );
    assert_eq!(contexts(&file, &["current"]).await.ok().stdout, "local\n");
}

#[tokio::test]
async fn using_a_context_changes_only_its_line_and_keeps_the_files_mode_and_link() {
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("real.toml"), folder.path().join("contexts.toml"));
    fs::write(&file, FILE).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    symlink("real.toml", &link).unwrap();
    contexts(&link, &["use", "shop"]).await.ok();
    assert_eq!(fs::read_to_string(&file).unwrap(), FILE.replace("'local'", "\"shop\""));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o640);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(contexts(&link, &["current"]).await.ok().stdout, "shop\n");
    // The context is the one that other verbs use.
    let mut doctor = docent("", ["ensemble", "--timeout", "50ms"]);
    let ended = end(doctor.env("DOCENT_CONTEXTS", &link).spawn().unwrap()).await;
    assert!(ended.code == 69 && ended.stdout.contains("zk2:2181"), "{ended:?}");
}

#[tokio::test]
async fn a_context_that_does_not_exist_leaves_the_file_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("contexts.toml");
    fs::write(&file, FILE).unwrap();
    let unknown = contexts(&file, &["use", "prod"]).await;
    assert!(unknown.code == 2 && unknown.stderr.contains("known: local, shop"), "{unknown:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), FILE);
    fs::write(&file, "[contexts.a]\nconnect = \"a:1\"\n").unwrap();
    let none = contexts(&file, &["current"]).await;
    assert!(none.code == 1 && none.stderr.contains("no context is current"), "{none:?}");
    contexts(&file, &["use", "a"]).await.ok();
    assert_eq!(fs::read_to_string(&file).unwrap(), "current = \"a\"\n[contexts.a]\nconnect = \"a:1\"\n");
    let missing = contexts(&folder.path().join("missing.toml"), &["list"]).await;
    assert!(missing.code == 2 && missing.stderr.contains("missing.toml"), "{missing:?}");
}
