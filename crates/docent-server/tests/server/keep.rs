//! The file that stores a server's state between a clean stop and the next start.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

use crate::support::{Peer, bounded, fresh};
use docent_proto::{Acl, Code, ConnectRequest, Create, CreateMode, Permissions, Request, Response};
use docent_server::{KeepFault, Server, StartError};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

async fn start(file: &Path) -> Server {
    Server::builder().keep(file).start().await.unwrap()
}

async fn refusal(file: &Path) -> KeepFault {
    match Server::builder().keep(file).start().await.unwrap_err() {
        StartError::Keep(error) => {
            assert_eq!(error.file(), file);
            assert!(error.to_string().contains(error.file().to_str().unwrap()), "{error}");
            error.into_fault()
        }
        other => panic!("{other}"),
    }
}

fn folder() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("state");
    (folder, file)
}

/// Returns the names of the files in a folder.
fn names(folder: &TempDir) -> Vec<String> {
    let names = fs::read_dir(folder.path()).unwrap();
    names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn locked(path: &str) -> Request {
    let reader = Acl { permissions: Permissions::READ, scheme: "world".into(), id: "anyone".into() };
    let flags = CreateMode::Persistent.flags();
    let kind = docent_proto::CreateKind::Plain;
    Request::Create(Create { kind, path: path.into(), data: None, acl: vec![reader].into(), flags })
}

/// Creates a state file with two nodes and the session that owns one of them.
async fn filled(file: &Path) -> ConnectRequest {
    let server = start(file).await;
    let mut peer = Peer::open(&server).await;
    peer.call(locked("/locked")).await.unwrap();
    peer.create("/mine", CreateMode::Ephemeral).await.unwrap();
    let ticket = peer.ticket();
    server.try_stop().await.unwrap();
    ticket
}

#[tokio::test]
async fn a_clean_stop_keeps_nodes_lists_and_sessions_for_the_next_start() {
    let (folder, file) = folder();
    let ticket = filled(&file).await;
    let server = start(&file).await;
    assert_eq!(server.nodes(), ["/locked", "/mine"]);
    let mut peer = Peer::handshake(&server, &ticket).await.expect("the session is resumed");
    assert_eq!(peer.session.session_id, ticket.session_id);
    assert_eq!(peer.set_data("/locked", b"x").await, Err(Code::NO_AUTH));
    let Ok(Response::Data { data, stat }) = peer.get_data("/mine", false).await else { panic!() };
    assert_eq!((data.as_deref(), stat.ephemeral_owner), (Some(&b""[..]), ticket.session_id));
    peer.create("/next", CreateMode::Persistent).await.unwrap();
    assert!(peer.last_zxid > ticket.last_zxid_seen);
    let wrong = ConnectRequest { password: vec![0; 16].into(), ..ticket.clone() };
    let refused = Peer::handshake(&server, &wrong).await.unwrap();
    assert_eq!(refused.session.session_id, 0, "a wrong password was accepted");
    server.stop().await;
    assert_eq!(names(&folder), ["state"], "other files were left behind");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn without_a_clean_stop_nothing_since_the_start_is_kept_and_no_session() {
    let (_folder, file) = folder();
    let ticket = filled(&file).await;
    let server = start(&file).await;
    let mut peer = Peer::handshake(&server, &ticket).await.unwrap();
    peer.create("/since", CreateMode::Persistent).await.unwrap();
    let ticket = peer.ticket();
    drop(server);
    let server = start(&file).await;
    assert_eq!(server.nodes(), ["/locked"], "the ephemeral node must end with its session");
    // The session may have seen changes that are lost, so it must not be resumed as if nothing had happened.
    let mut expired = Peer::raw(&server).await;
    assert!(expired.attach(&ticket).await, "the reply must be an expired session, not a refusal");
    assert_eq!(expired.session.session_id, 0);
}

#[tokio::test]
async fn a_session_that_was_kept_has_its_full_timeout_after_the_start() {
    let (_folder, file) = folder();
    let ticket = filled(&file).await;
    let hour = Duration::from_secs(3_600);
    let begun = tokio::time::Instant::now();
    let server = Server::builder().keep(&file).tick(Duration::from_millis(100));
    let server = server.clock(move || 1_000_000 * hour + begun.elapsed()).start().await.unwrap();
    let info = server.session(ticket.session_id).unwrap();
    assert_eq!((info.timeout, info.attached), (Duration::from_secs(10), false));
    let (attached, zxid) = (Peer::handshake(&server, &ticket).await.unwrap(), server.zxid());
    assert_eq!(attached.session.timeout_ms, 2_000, "the maximum of this server is granted");
    let ended = async {
        while server.session(ticket.session_id).is_some() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    bounded(ended).await;
    assert!(begun.elapsed() >= Duration::from_secs(2) && server.zxid() > zxid);
    assert_eq!(server.nodes(), ["/locked"]);
}

#[tokio::test]
async fn a_file_that_was_changed_at_any_byte_is_refused_and_kept() {
    let (folder, file) = folder();
    filled(&file).await;
    let whole = fs::read(&file).unwrap();
    for place in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[place] ^= 1;
        fs::write(&file, &damaged).unwrap();
        let fault = refusal(&file).await;
        let has_a_name = match fault {
            KeepFault::Unknown | KeepFault::Version(_) => place < 100,
            KeepFault::CutOff { .. } | KeepFault::Damaged => true,
            _ => false,
        };
        assert!(has_a_name, "byte {place}: {fault}");
        assert!(fs::read(&file).unwrap() == damaged, "byte {place}: the file was changed");
    }
    assert_eq!(names(&folder), ["state"]);
    fs::write(&file, [&whole[..], b"x"].concat()).unwrap();
    assert!(matches!(refusal(&file).await, KeepFault::Damaged), "an additional byte was accepted");
    fs::write(&file, &whole).unwrap();
    assert_eq!(start(&file).await.nodes(), ["/locked", "/mine"]);
}

#[tokio::test]
async fn a_file_that_ends_too_early_is_refused_with_the_number_of_missing_bytes() {
    let (_folder, file) = folder();
    filled(&file).await;
    let whole = fs::read(&file).unwrap();
    for length in 0..whole.len() {
        fs::write(&file, &whole[..length]).unwrap();
        let fault = refusal(&file).await;
        let KeepFault::CutOff { missing } = fault else { panic!("{length} bytes: {fault}") };
        assert!(missing > 0 && missing <= (whole.len() - length) as u64, "{length} bytes: {missing}");
        assert_eq!(fs::read(&file).unwrap().len(), length);
    }
}

#[tokio::test]
async fn a_file_of_another_format_is_refused_with_a_reason() {
    let (folder, file) = folder();
    fs::write(&file, "tickTime=2000\n").unwrap();
    assert!(matches!(refusal(&file).await, KeepFault::Unknown));
    assert_eq!(fs::read(&file).unwrap(), b"tickTime=2000\n");
    assert!(matches!(refusal(folder.path()).await, KeepFault::NotAFile));
    assert!(matches!(refusal(&folder.path().join("missing/state")).await, KeepFault::Write(_)));
    assert!(matches!(refusal(Path::new("/dev/null")).await, KeepFault::NotAFile));
    filled(&folder.path().join("other")).await;
    let newer = fs::read(folder.path().join("other")).unwrap();
    let end = newer.iter().position(|byte| *byte == b'\n').unwrap();
    fs::write(&file, [&newer[..end - 1], b"12", &newer[end..]].concat()).unwrap();
    let fault = refusal(&file).await;
    assert!(matches!(fault, KeepFault::Version(12)), "{fault}");
}

#[tokio::test]
async fn a_port_in_use_leaves_the_file_unchanged() {
    let (_folder, file) = folder();
    filled(&file).await;
    let (before, other) = (fs::read(&file).unwrap(), Server::start().await.unwrap());
    let refused = Server::builder().keep(&file).bind(other.local_addr()).start().await;
    assert!(matches!(refused, Err(StartError::Bind { .. })));
    assert!(fs::read(&file).unwrap() == before);
}

#[tokio::test]
async fn a_file_that_cannot_be_written_at_the_stop_is_reported() {
    let (folder, file) = folder();
    let server = start(&file).await;
    fs::remove_dir_all(folder.path()).unwrap();
    let error = server.try_stop().await.unwrap_err();
    assert!(matches!(error.fault(), KeepFault::Write(_)) && error.is_retryable(), "{error}");
}

#[tokio::test]
async fn a_link_to_the_file_stays_a_link_and_only_its_owner_may_read_it() {
    let (folder, file) = folder();
    let link = folder.path().join("link");
    fs::write(&file, "").unwrap();
    fs::remove_file(&file).unwrap();
    filled(&file).await;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    symlink(&file, &link).unwrap();
    // Left behind by a server that was killed while it wrote. The symbolic link must not be followed.
    symlink(folder.path().join("elsewhere"), folder.path().join(".state.new")).unwrap();
    let server = start(&link).await;
    let mut peer = Peer::handshake(&server, &fresh(10_000)).await.unwrap();
    peer.create("/more", CreateMode::Persistent).await.unwrap();
    server.try_stop().await.unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!folder.path().join("elsewhere").exists() && !folder.path().join(".state.new").exists());
    assert_eq!(start(&file).await.nodes(), ["/locked", "/mine", "/more"]);
}

#[tokio::test]
async fn a_second_server_on_the_same_file_is_refused_until_the_first_has_stopped() {
    let (folder, file) = folder();
    let link = folder.path().join("link");
    symlink(&file, &link).unwrap();
    let first = start(&file).await;
    let mut peer = Peer::open(&first).await;
    // The first start replaced the file, so the other servers open a different file than the first one
    // locked.
    for other in [&file, &link, &folder.path().join(".").join("state")] {
        let fault = refusal(other).await;
        assert!(matches!(fault, KeepFault::InUse), "{other:?}: {fault}");
    }
    peer.create("/kept", CreateMode::Persistent).await.unwrap();
    first.try_stop().await.unwrap();
    let second = start(&file).await;
    assert_eq!(second.nodes(), ["/kept"]);
    // The same applies without a clean stop.
    drop(second);
    start(&file).await.stop().await;
}

#[tokio::test]
async fn one_of_many_servers_started_together_on_one_file_serves() {
    for _ in 0..20 {
        let (folder, file) = folder();
        let starts = (0..8).map(|_| tokio::spawn(Server::builder().keep(&file).start()));
        let mut serving = Vec::new();
        for start in starts.collect::<Vec<_>>() {
            match start.await.unwrap() {
                Ok(server) => serving.push(server),
                Err(StartError::Keep(error)) if matches!(error.fault(), KeepFault::InUse) => {
                    assert!(error.is_retryable());
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(serving.len(), 1);
        for server in serving {
            server.try_stop().await.unwrap();
        }
        assert_eq!(names(&folder), ["state"]);
    }
}
