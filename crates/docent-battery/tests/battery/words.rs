//! Four-letter words: the text that third-party tools read from a server.

use docent_battery::{Backend, RawClient, TestServer, both_backends_in_real_time};
use docent_proto::{Acl, Create, CreateMode, Request};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn ask(server: &TestServer, word: &str) -> String {
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    stream.write_all(word.as_bytes()).await.unwrap();
    let mut text = String::new();
    let read = tokio::time::timeout(Duration::from_secs(10), stream.read_to_string(&mut text)).await;
    read.expect("the server closes the link").unwrap();
    text
}

/// Returns the lines of a text, with `#` in place of each number.
fn shape(text: &str) -> Vec<String> {
    text.split('\n').map(|line| without_date(&without_numbers(line))).collect()
}

fn without_numbers(line: &str) -> String {
    let (mut shape, mut rest) = (String::new(), line);
    while let Some(first) = rest.chars().next() {
        let length = match rest.strip_prefix("0x") {
            Some(hex) => 2 + hex.find(|digit: char| !digit.is_ascii_hexdigit()).unwrap_or(hex.len()),
            None if first.is_ascii_digit() || rest.starts_with("-1") && !shape.ends_with('#') => {
                1 + rest[1..].find(|digit: char| !matches!(digit, '0'..='9' | '.')).unwrap_or(rest.len() - 1)
            }
            None => {
                shape.push(first);
                rest = &rest[first.len_utf8()..];
                continue;
            }
        };
        shape.push_str(if rest.starts_with("0x") { "0x#" } else { "#" });
        rest = &rest[length..];
    }
    shape
}

/// Returns a line without the names of day and month in a date.
fn without_date(line: &str) -> String {
    let Some((before, date)) = line.split_once(" expire at ") else { return line.to_owned() };
    let words: Vec<&str> = date.split(' ').collect();
    assert!(words[0].len() == 3 && words[1].len() == 3, "{line}");
    assert_eq!(words[2..], ["#", "#:#:#", "UTC", "#:"], "{line}");
    format!("{before} expire at DATE")
}

/// Returns the version of the protocol, extracted as tools do.
fn version(text: &str) -> &str {
    let (version, date) = text.split_once(", built on ").expect("the version line contains a date");
    assert_eq!(shape(date), ["#-#-# #:# UTC"]);
    assert!(version.starts_with("3.8.0-"), "{version}");
    &version[..5]
}

async fn create(client: &mut RawClient, path: &str, mode: CreateMode) {
    client.call(Request::Create(Create::new(path.into(), "abc".into(), Acl::open(), mode, 0))).await.unwrap();
}

fn get_data(path: &str, watch: bool) -> Request {
    Request::GetData { path: path.into(), watch }
}

const COUNTS: [&str; 9] = [
    "Latency min/avg/max: #/#/#",
    "Received: #",
    "Sent: #",
    "Connections: #",
    "Outstanding: #",
    "Zxid: 0x#",
    "Mode: standalone",
    "Node count: #",
    "",
];

const GAUGES: [&str; 30] = [
    "zk_server_state\tstandalone",
    "zk_ephemerals_count\t#",
    "zk_num_alive_connections\t#",
    "zk_avg_latency\t#",
    "zk_outstanding_requests\t#",
    "zk_znode_count\t#",
    "zk_global_sessions\t#",
    "zk_non_mtls_remote_conn_count\t#",
    "zk_last_client_response_size\t#",
    "zk_packets_sent\t#",
    "zk_packets_received\t#",
    "zk_max_client_response_size\t#",
    "zk_connection_drop_probability\t#",
    "zk_watch_count\t#",
    "zk_auth_failed_count\t#",
    "zk_min_latency\t#",
    "zk_max_file_descriptor_count\t#",
    "zk_approximate_data_size\t#",
    "zk_open_file_descriptor_count\t#",
    "zk_local_sessions\t#",
    "zk_uptime\t#",
    "zk_max_latency\t#",
    "zk_outstanding_tls_handshake\t#",
    "zk_min_client_response_size\t#",
    "zk_non_mtls_local_conn_count\t#",
    "zk_large_requests_rejected\t#",
    "zk_connection_rejected\t#",
    "zk_bytes_received_count\t#",
    "zk_connection_request_count\t#",
    "",
];

/// Returns a number of `mntr`.
fn gauge(text: &str, name: &str) -> f64 {
    let value = text.lines().find_map(|line| line.strip_prefix(&format!("zk_{name}\t")));
    value.unwrap_or_else(|| panic!("{name} is missing: {text}")).parse().unwrap()
}

/// Returns a number of `srvr`.
fn count(text: &str, name: &str) -> u64 {
    text.lines().find_map(|line| line.strip_prefix(&format!("{name}: "))).unwrap().parse().unwrap()
}

/// Returns the text of `srvr` with the expected counts. A server counts a packet only after it has sent it,
/// so the last ones may be missing at first. Each further question and its answer are counted as well.
async fn counted(server: &TestServer, received: u64, sent: u64) -> String {
    let settled = async {
        for asked in 0.. {
            let text = ask(server, "srvr").await;
            assert_eq!(count(&text, "Received"), received + asked);
            let counted = count(&text, "Sent");
            assert!(counted <= sent + asked, "{counted} packets sent instead of {sent} + {asked}");
            if counted == sent + asked {
                return text;
            }
        }
        unreachable!("the numbers do not end")
    };
    tokio::time::timeout(Duration::from_secs(10), settled).await.expect("everything sent is counted")
}

/// Returns the line of `cons` for the connection of `client`.
async fn line_of(server: &TestServer, client: &RawClient) -> String {
    let own = format!("sid={:#x},", client.session().session_id);
    let text = ask(server, "cons").await;
    text.lines().find(|line| line.contains(&own)).unwrap().to_owned()
}

both_backends_in_real_time! {
    async fn srvr_and_stat_print_the_same_lines(backend: Backend) {
        let server = backend.start_own().await;
        let mut client = server.client().await;
        client.call(Request::Ping).await.unwrap();
        let text = ask(&server, "srvr").await;
        let (first, rest) = text.split_once('\n').unwrap();
        assert_eq!(version(first.strip_prefix("Zookeeper version: ").unwrap()), "3.8.0");
        assert_eq!(shape(rest), COUNTS);
        let text = ask(&server, "stat").await;
        let mut lines = shape(text.split_once('\n').unwrap().1);
        assert_eq!(lines.remove(0), "Clients:");
        for _ in 0..2 {
            assert_eq!(lines.remove(0), " /#:#[#](queued=#,recved=#,sent=#)");
        }
        assert_eq!(lines.remove(0), "");
        assert_eq!(lines, COUNTS);
    }

    async fn the_mask_of_traces_is_the_one_that_was_set(backend: Backend) {
        let server = backend.start_own().await;
        assert_eq!(ask(&server, "gtmk").await, "306");
        assert_eq!(ask(&server, "stmk\0\0\0\0\0\0\x01\x02").await, "258");
        assert_eq!(ask(&server, "gtmk").await, "258");
    }

    async fn counts_are_those_of_what_was_sent(backend: Backend) {
        let server = backend.start_own().await;
        let mut client = server.client().await;
        // A server counts an answer to a client after it has sent it, which may be after the reset.
        let connected = async { while !line_of(&server, &client).await.contains("recved=1,sent=1,") {} };
        tokio::time::timeout(Duration::from_secs(10), connected).await.expect("the handshake is counted");
        assert_eq!(ask(&server, "srst").await, "Server stats reset.\n");
        assert_eq!(ask(&server, "crst").await, "Connection stats reset.\n");
        let path = server.path("a");
        create(&mut client, &path, CreateMode::Persistent).await;
        let mut other = server.client().await;
        client.call(get_data(&path, true)).await.unwrap();
        other.call(Request::SetData { path: path.clone(), data: None, version: -1 }).await.unwrap();
        client.event().await.unwrap();
        // Received: four requests and two words. Sent: an event, and answers to four requests and two words.
        let text = counted(&server, 4 + 2, 1 + 4 + 2).await;
        assert_eq!((count(&text, "Connections"), count(&text, "Outstanding")), (3, 0));
        let line = line_of(&server, &client).await;
        assert!(line.contains("(queued=0,recved=2,sent=3,"), "{line}");
        assert!(line.contains(",lop=GETD,") && line.contains(",to=10000,lcxid=0x2,"), "{line}");
        let text = ask(&server, "mntr").await;
        assert_eq!((gauge(&text, "global_sessions") as u64, gauge(&text, "watch_count") as u64), (2, 0));
        assert!(gauge(&text, "min_latency") <= gauge(&text, "avg_latency"));
        assert!(gauge(&text, "avg_latency") <= gauge(&text, "max_latency"));
    }

    async fn mntr_prints_the_gauges_of_a_server(backend: Backend) {
        let server = backend.start_own().await;
        let mut client = server.client().await;
        let nodes = gauge(&ask(&server, "mntr").await, "znode_count");
        create(&mut client, &server.path("e"), CreateMode::Ephemeral).await;
        client.call(get_data(&server.path("e"), true)).await.unwrap();
        client.call(Request::GetChildren { path: "/".into(), watch: true }).await.unwrap();
        let text = ask(&server, "mntr").await;
        let first = text.lines().next().unwrap();
        assert_eq!(version(first.strip_prefix("zk_version\t").unwrap()), "3.8.0");
        let lines: BTreeSet<String> = shape(text.split_once('\n').unwrap().1).into_iter().collect();
        let expected = GAUGES.map(str::to_owned).into_iter().collect::<BTreeSet<_>>();
        // A real server also prints hundreds of internal counters.
        assert_eq!(expected.difference(&lines).next(), None);
        assert!(backend == Backend::Real || lines == expected, "{lines:#?}");
        assert_eq!((gauge(&text, "znode_count"), gauge(&text, "ephemerals_count")), (nodes + 1.0, 1.0));
        assert_eq!((gauge(&text, "watch_count"), gauge(&text, "global_sessions")), (2.0, 1.0));
        // The root and the initial nodes of a server take 44 bytes. Names and data count.
        let of_root = 44 + server.root().len();
        assert_eq!(gauge(&text, "approximate_data_size"), (of_root + server.path("e").len() + 3) as f64);
        assert!(gauge(&text, "open_file_descriptor_count") > 3.0);
    }

    async fn conf_envi_dirs_isro_and_ruok_print_the_same_keys(backend: Backend) {
        let server = backend.start_own().await;
        let keys = |text: &str| -> Vec<String> {
            text.lines().map(|line| line.split_once('=').unwrap_or((line, "")).0.to_owned()).collect()
        };
        let conf = ask(&server, "conf").await;
        assert_eq!(
            keys(&conf),
            [
                "clientPort", "secureClientPort", "dataDir", "dataDirSize", "dataLogDir", "dataLogSize", "tickTime",
                "maxClientCnxns", "minSessionTimeout", "maxSessionTimeout", "clientPortListenBacklog", "serverId"
            ]
        );
        for expected in [
            &*format!("clientPort={}\n", server.address().port()), "tickTime=200\n", "minSessionTimeout=400\n",
            "maxSessionTimeout=60000\n", "maxClientCnxns=0\n", "serverId=0\n",
        ] {
            assert!(conf.contains(expected), "{conf}");
        }
        let envi = ask(&server, "envi").await;
        assert_eq!(
            keys(&envi),
            [
                "Environment:", "zookeeper.version", "host.name", "java.version", "java.vendor", "java.home",
                "java.class.path", "java.library.path", "java.io.tmpdir", "java.compiler", "os.name", "os.arch",
                "os.version", "user.name", "user.home", "user.dir", "os.memory.free", "os.memory.max", "os.memory.total"
            ]
        );
        let line = envi.lines().nth(1).unwrap();
        assert_eq!(version(line.strip_prefix("zookeeper.version=").unwrap()), "3.8.0");
        assert_eq!(shape(&ask(&server, "dirs").await), ["datadir_size: #", "logdir_size: #", ""]);
        assert_eq!((&*ask(&server, "isro").await, &*ask(&server, "ruok").await), ("rw", "imok"));
        assert_eq!(ask(&server, "nope").await, "");
    }

    async fn cons_and_dump_list_links_sessions_and_ephemeral_nodes(backend: Backend) {
        let server = backend.start_own().await;
        let mut client = server.client().await;
        create(&mut client, &server.path("e"), CreateMode::Ephemeral).await;
        let mut lines = shape(&ask(&server, "cons").await);
        lines.sort();
        let of_session = " /#:#[#](queued=#,recved=#,sent=#,sid=0x#,lop=CREA,est=#,to=#,lcxid=0x#,lzxid=0x#,\
                          lresp=#,llat=#,minlat=#,avglat=#,maxlat=#)";
        assert_eq!(lines, ["", "", " /#:#[#](queued=#,recved=#,sent=#)", of_session]);
        let dump = ask(&server, "dump").await;
        let own = format!("{:#x}:\n\t{}\n", client.session().session_id, server.path("e"));
        assert!(dump.contains(&own), "{dump}");
        // A real server keeps sets that have become empty.
        let kept: Vec<&str> = dump.split('\n').filter(|line| !line.starts_with("0 expire at")).collect();
        let shape = shape(&kept.join("\n").replace(&server.path("e"), "PATH"));
        let mut lines: Vec<&str> = shape.iter().map(|line| &**line).collect();
        let at = lines.iter().position(|line| line.starts_with("Connections Sets")).unwrap();
        let links: BTreeSet<&str> = lines.split_off(at + 1).into_iter().collect();
        assert_eq!(
            lines,
            [
                "SessionTracker dump:", "Session Sets (#)/(#):", "# expire at DATE", "\t0x#", "ephemeral nodes dump:",
                "Sessions with Ephemerals (#):", "0x#:", "\tPATH", "Connections dump:", "Connections Sets (#)/(#):"
            ]
        );
        let expected = ["", "\tip: /#:# sessionId: 0x#", "# expire at DATE"];
        assert_eq!(links, BTreeSet::from(expected));
    }

    async fn wchs_wchc_and_wchp_list_watches_on_data(backend: Backend) {
        let server = backend.start_own().await;
        let (mut first, mut second) = (server.client().await, server.client().await);
        let (here, missing) = (server.root().to_owned(), server.path("missing"));
        first.call(get_data(&here, true)).await.unwrap();
        first.call(Request::GetChildren { path: here.clone(), watch: true }).await.unwrap();
        second.call(get_data(&here, true)).await.unwrap();
        second.ask(Request::Exists { path: missing.clone(), watch: true }).await.unwrap();
        assert_eq!(ask(&server, "wchs").await, "2 connections watching 2 paths\nTotal watches:3\n");
        let [one, two] = [&first, &second].map(|client| format!("{:#x}", client.session().session_id));
        let sorted = |text: &str| -> Vec<String> {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        let by_session = format!("{one}\n\t{here}\n{two}\n\t{here}\n\t{missing}\n\n");
        assert_eq!(sorted(&ask(&server, "wchc").await), sorted(&by_session));
        let by_path = format!("{here}\n\t{one}\n\t{two}\n{missing}\n\t{two}\n\n");
        assert_eq!(sorted(&ask(&server, "wchp").await), sorted(&by_path));
    }
}
