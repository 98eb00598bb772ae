//! Replays the requests that docent-proto's golden frames record, and compares the replies with the recorded
//! ones.

use bytes::{Bytes, BytesMut};
use docent_battery::{Backend, RawClient, ServerOptions, both_backends_in_real_time};
use docent_proto::{
    Acl, Code, Create, CreateMode, Frames, MultiResult, OpCode, Record, ReplyHeader, Request, RequestFrame,
    Response, Stat,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

const HEADER: usize = 16;
/// In the recording the session was transaction 1, and the first create came next.
const FIRST_CREATE: i64 = 2;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docent-proto/tests/golden/frames")
}

fn frame(path: &Path) -> Bytes {
    let text = std::fs::read_to_string(path).expect("a recorded frame");
    let digits = text.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace);
    let mut bytes: BytesMut = digits.map(|byte| u8::from_str_radix(byte, 16).expect("hexadecimal")).collect();
    Frames::new(1024).next(&mut bytes).expect("the length is valid").expect("the frame is complete")
}

/// Returns the numbered requests of the recording, with their recorded replies.
fn recorded() -> BTreeMap<i32, (Request, Bytes)> {
    let mut requests = BTreeMap::new();
    for entry in std::fs::read_dir(folder()).expect("the folder of recorded frames") {
        let path = entry.expect("a readable folder").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(what) = name.strip_suffix("-request.hex") else { continue };
        let reply = path.with_file_name(format!("{what}-response.hex"));
        // The frame that opens a session is not a request, and frames after a reconnect are skipped.
        let Ok(RequestFrame { xid, request }) = RequestFrame::decode(frame(&path)) else { continue };
        if xid > 0 && !matches!(request, Request::SetWatches(_) | Request::CloseSession) {
            requests.insert(xid, (request, frame(&reply)));
        }
    }
    requests
}

/// Returns the numbered requests that were sent as well, but are not recorded because they repeat another
/// frame.
fn between() -> BTreeMap<i32, Request> {
    let create = Create::new("/golden/missing".into(), Bytes::new(), Acl::open(), CreateMode::Persistent, 0);
    let exists = |path: &str| Request::Exists { path: path.into(), watch: true };
    BTreeMap::from([
        (9, Request::Create(create)),
        (17, exists("/golden/a")),
        (18, Request::Delete { path: "/golden/a".into(), version: 1 }),
        (25, exists("/golden/x")),
        (26, Request::GetData { path: "/golden/m".into(), watch: true }),
        (27, Request::GetChildren { path: "/golden".into(), watch: true }),
    ])
}

/// Returns a reply without the parts that differ between runs: times, session ids, and the number of
/// transactions before the reply.
fn comparable(op: OpCode, frame: &Bytes, before: i64) -> (i64, Code, Option<Response>) {
    let mut body = frame.clone();
    let header = ReplyHeader::decode(body.split_to(HEADER)).expect("a header");
    let response = (header.code == Code::OK).then(|| Response::decode(op, body).expect("a body"));
    (header.zxid - before, header.code, response.map(|response| without_chance(response, before)))
}

fn without_chance(response: Response, before: i64) -> Response {
    let plain = |stat| plain(stat, before);
    match response {
        Response::Created { path, stat } => Response::Created { path, stat: stat.map(plain) },
        Response::Stat(stat) => Response::Stat(plain(stat)),
        Response::Data { data, stat } => Response::Data { data, stat: plain(stat) },
        Response::Children { names, stat } => {
            Response::Children { names: sorted(names), stat: stat.map(plain) }
        }
        Response::Acl { acl, stat } => Response::Acl { acl, stat: plain(stat) },
        Response::Multi(results) => {
            let result = |result| match result {
                MultiResult::Created { path, stat } => {
                    MultiResult::Created { path, stat: stat.map(|stat| plain(*stat).into()) }
                }
                MultiResult::Set(stat) => MultiResult::Set(plain(*stat).into()),
                MultiResult::Data { data, stat } => MultiResult::Data { data, stat: plain(*stat).into() },
                MultiResult::Children(names) => MultiResult::Children(sorted(names)),
                other => other,
            };
            Response::Multi(results.into_iter().map(result).collect())
        }
        Response::Ephemerals(paths) => Response::Ephemerals(sorted(paths)),
        other @ (Response::Empty
        | Response::Synced { .. }
        | Response::WatchAdded(_)
        | Response::Sasl { .. }
        | Response::Count(_)
        | Response::Clients(_)) => other,
    }
}

fn plain(stat: Stat, before: i64) -> Stat {
    Stat {
        czxid: stat.czxid - before,
        mzxid: stat.mzxid - before,
        pzxid: stat.pzxid - before,
        ctime: 0,
        mtime: 0,
        ephemeral_owner: stat.ephemeral_owner.signum(),
        ..stat
    }
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

both_backends_in_real_time! {
    async fn a_server_answers_as_was_recorded(backend: Backend) {
        let server = backend.start_own_with(ServerOptions::default().extended_types(true)).await;
        let mut client = RawClient::open(server.address(), Duration::from_secs(6)).await.unwrap();
        let auth = Request::Auth { scheme: "digest".into(), credentials: "user:secret".into() };
        client.call(auth).await.unwrap();
        let (recorded, between) = (recorded(), between());
        assert_eq!(recorded.len() + between.len(), 29);
        let mut before = 0;
        for number in 1..=29 {
            let Some((request, expected)) = recorded.get(&number) else {
                client.call(between[&number].clone()).await.ok();
                continue;
            };
            let reply = client.ask(request.clone()).await.unwrap();
            if number == 1 {
                before = reply.header.zxid - FIRST_CREATE;
            }
            let (answer, expected) =
                (comparable(request.op(), &reply.frame, before), comparable(request.op(), expected, 0));
            assert!(answer == expected, "{number} {request:?}: {answer:?} instead of {expected:?}");
        }
    }
}
