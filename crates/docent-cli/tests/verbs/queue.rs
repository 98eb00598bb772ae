//! `docent queue`.

use crate::docent_command::{Ended, PATIENCE, Running, docent, end, run, run_with, servers};
use docent::Client;
use docent::node::CreateMode;
use docent_battery::{Backend, both_backends_in_real_time, round_trips};
use docent_testkit::eventually;
use rustix::process::{Pid, Signal, kill_process};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;

const JOBS: &str = "/queues/jobs";

async fn queue(connect: &str, arguments: &[&str]) -> Ended {
    run(connect, ["queue"].iter().chain(arguments)).await
}

both_backends_in_real_time! {
    async fn lines_are_put_and_taken_in_order(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        run_with(&connect, ["queue", "put", JOBS], "a\nb c\n\nd").await.ok();
        assert_eq!(queue(&connect, &["len", JOBS]).await.ok().stdout, "4\n");
        assert_eq!(queue(&connect, &["peek", JOBS]).await.ok().stdout, "a\n");
        let all = queue(&connect, &["take", JOBS, "--follow", "--nonblock"]).await.ok();
        assert_eq!(all.stdout, "a\nb c\n\nd\n");
        assert_eq!(queue(&connect, &["len", JOBS, "-o", "json"]).await.ok().json()[0]["depth"], 0);
        assert_eq!(queue(&connect, &["peek", JOBS]).await.code, 1);
    }

    async fn a_take_that_times_out_exits_with_75(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        assert_eq!(queue(&connect, &["take", JOBS, "--nonblock"]).await.code, 75);
        let ended = queue(&connect, &["take", JOBS, "--wait", "200ms"]).await;
        assert_eq!((ended.code, &*ended.stderr), (75, "docent: no item became available in /queues/jobs\n"));
    }

    async fn a_take_waits_for_an_item_until_a_signal(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let mut taker = Running::start(&connect, ["queue", "take", JOBS, "--follow", "-o", "json"]);
        queue(&connect, &["put", JOBS, "x"]).await.ok();
        let taken: serde_json::Value = serde_json::from_str(&taker.line().await).unwrap();
        assert_eq!((&taken["value"], &taken["deliveries"]), (&"x".into(), &1.into()), "{taken}");
        assert_eq!(taker.stop(Signal::TERM).await, 143);
    }

    async fn an_item_is_acknowledged_if_its_command_succeeds_and_returned_otherwise(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        queue(&connect, &["put", JOBS, "work"]).await.ok();
        let fails = queue(&connect, &["take", JOBS, "--", "sh", "-c", "exit 3"]).await;
        assert_eq!(fails.code, 3, "the exit code must be the command's: {fails:?}");
        assert_eq!(queue(&connect, &["len", JOBS]).await.ok().stdout, "1\n");
        let script = "cat; echo \" $DOCENT_PATH $DOCENT_DELIVERIES ${DOCENT_FENCE:+fenced} ${DOCENT_ITEM:+named}\"";
        let well = queue(&connect, &["take", JOBS, "--", "sh", "-c", script]).await.ok();
        assert_eq!(well.stdout, "work /queues/jobs 2 fenced named\n");
        assert_eq!(queue(&connect, &["len", JOBS]).await.ok().stdout, "0\n");
    }

    async fn a_command_that_fails_uses_up_no_backlog(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        queue(&connect, &["put", JOBS, "a", "b", "c"]).await.ok();
        let script = "echo $DOCENT_DELIVERIES; exit 1";
        let mut taker = Running::start(&connect, ["queue", "take", JOBS, "--follow", "--", "sh", "-c", script]);
        assert_eq!(taker.line().await, "1");
        let began = Instant::now();
        taker.line().await;
        taker.line().await;
        assert!(began.elapsed() > Duration::from_millis(1_500), "{:?}", began.elapsed());
        assert_eq!(taker.stop(Signal::TERM).await, 143);
        assert_eq!(queue(&connect, &["len", JOBS]).await.ok().stdout, "3\n", "all items must be back in the queue");
        assert_eq!(queue(&connect, &["dead", JOBS, "-o", "json"]).await.ok().stdout, "");
    }

    async fn an_item_whose_command_does_not_exist_is_returned(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        queue(&connect, &["put", JOBS, "work"]).await.ok();
        assert_eq!(queue(&connect, &["take", JOBS, "--", "/no/such/command"]).await.code, 127);
        assert_eq!(queue(&connect, &["take", JOBS, "--follow", "--", "/no/such/command"]).await.code, 126);
        assert_eq!(queue(&connect, &["len", JOBS]).await.ok().stdout, "1\n");
    }

    async fn an_item_of_a_killed_worker_is_delivered_again(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        queue(&connect, &["put", JOBS, "work"]).await.ok();
        let arguments = ["--session-timeout", "1s", "--server-tick", "200ms", "queue", "take", JOBS];
        let mut worker = Running::start(&connect, arguments.iter().chain(&["--", "sh", "-c", "echo at it; sleep 60"]));
        assert_eq!(worker.line().await, "at it");
        assert_eq!(worker.stop(Signal::KILL).await, -1);
        assert_eq!(queue(&connect, &["take", JOBS, "--wait", "10s"]).await.ok().stdout, "work\n");
    }

    async fn dead_letters_are_listed_and_put_back(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = Client::connect(&connect).await.unwrap();
        let bytes = docent::Queue::<bytes::Bytes>::builder_with(&client, JOBS, docent::config::Raw).build().unwrap();
        for item in ["bad", "worse"] {
            let put = &queue(&connect, &["put", JOBS, item, "-o", "json"]).await.ok().json()[0];
            assert_eq!((&put["path"], &put["put"]), (&JOBS.into(), &1.into()), "{put}");
            bytes.take().await.unwrap().reject("no\u{1b}[2J good").await.unwrap();
        }
        let dead = queue(&connect, &["dead", JOBS, "-o", "json"]).await.ok().json();
        assert_eq!(dead.iter().map(|letter| &letter["value"]).collect::<Vec<_>>(), ["bad", "worse"]);
        let table = queue(&connect, &["dead", JOBS]).await.ok().stdout;
        assert!(table.contains("no\\u{1b}[2J good") && !table.contains('\u{1b}'), "{table}");
        assert_eq!(queue(&connect, &["requeue", JOBS, "unknown"]).await.code, 1);
        queue(&connect, &["requeue", JOBS, dead[1]["name"].as_str().unwrap()]).await.ok();
        assert_eq!(queue(&connect, &["peek", JOBS]).await.ok().stdout, "worse\n");
        let back = &queue(&connect, &["requeue", JOBS, "--all", "-o", "json"]).await.ok().json()[0];
        assert_eq!((&back["path"], &back["requeued"]), (&JOBS.into(), &1.into()), "{back}");
        assert_eq!(queue(&connect, &["len", JOBS]).await.ok().stdout, "2\n");
        client.close().await;
    }

    async fn items_of_another_program_are_reported_and_stay(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = Client::connect(&connect).await.unwrap();
        queue(&connect, &["put", JOBS, "first"]).await.ok();
        // As Curator writes them.
        let put = async |count: usize| {
            for _ in 0..count {
                let item = &b"\x00\x01\x00\x01\x01\x00\x00\x00\x01a\x02"[..];
                let path = format!("{JOBS}/items/item-");
                client.create(&path, item, CreateMode::PersistentSequential).await.unwrap();
            }
        };
        put(1).await;
        queue(&connect, &["put", JOBS, "second"]).await.ok();
        let taken = queue(&connect, &["take", JOBS, "--follow", "--nonblock"]).await.ok();
        assert_eq!(taken.stdout, "first\nsecond\n");
        let remark = "docent: cannot decode the item; leaving it for other consumers";
        assert!(taken.stderr.contains(remark) && taken.stderr.contains("item-0000000001"), "{taken:?}");
        put(40).await;
        for options in [&["--nonblock"][..], &["--wait", "1m"], &["--follow", "--", "cat"]] {
            let refused = queue(&connect, &[&["take", JOBS], options].concat()).await;
            assert_eq!((refused.code, &*refused.stdout), (65, ""), "{refused:?}");
            let text = refused.stderr.lines().last().unwrap();
            for named in ["\"/queues/jobs\"", "\"item-0000000001\"", "the data is not a queue item"] {
                assert!(text.contains(named), "{text}");
            }
        }
        assert_eq!(queue(&connect, &["len", JOBS]).await.ok().stdout, "41\n");
        assert_eq!(queue(&connect, &["dead", JOBS, "-o", "json"]).await.ok().stdout, "");
        client.close().await;
    }

    async fn the_maximum_number_of_items_is_an_option(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        queue(&connect, &["put", JOBS, "a", "b", "--capacity", "2"]).await.ok();
        let full = queue(&connect, &["put", JOBS, "c", "--capacity", "2"]).await;
        assert!(full.code == 1 && full.stderr.contains("2 items of at most 2"), "{full:?}");
        queue(&connect, &["put", JOBS, "c", "--capacity", "0"]).await.ok();
        assert_eq!(queue(&connect, &["len", JOBS]).await.ok().stdout, "3\n");
    }

    async fn an_item_with_a_lower_priority_number_is_taken_first(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        queue(&connect, &["put", JOBS, "later"]).await.ok();
        queue(&connect, &["put", JOBS, "sooner", "--priority", "-1"]).await.ok();
        assert_eq!(queue(&connect, &["take", JOBS]).await.ok().stdout, "sooner\n");
    }

    async fn an_item_whose_command_ends_with_126_or_127_does_not_end_the_consumer(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        queue(&connect, &["put", JOBS, "poison", "good"]).await.ok();
        let script = "read -r item; test $item = good || exec sh -c 'exit '$CODE; echo $item";
        for code in ["126", "127"] {
            let take = ["queue", "take", JOBS, "--follow", "--", "env", &format!("CODE={code}"), "sh", "-c", script];
            let mut taker = Running::start(&connect, take);
            assert_eq!(taker.line().await, "good");
            assert_eq!(taker.stop(Signal::TERM).await, 143);
            queue(&connect, &["put", JOBS, "good"]).await.ok();
        }
    }

    async fn nothing_is_taken_while_standard_output_is_closed(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        queue(&connect, &["put", JOBS, "a", "b"]).await.ok();
        let shell = async |script: &str| {
            let mut command = tokio::process::Command::new("sh");
            command.args(["-c", script, env!("CARGO_BIN_EXE_docent"), JOBS]).env("DOCENT_CONNECT", &connect);
            end(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()).await
        };
        let closed = shell("exec \"$0\" queue take \"$1\" >&-").await;
        assert!(closed.code == 2 && closed.stderr.contains("standard output is closed"), "{closed:?}");
        assert_eq!(queue(&connect, &["len", JOBS]).await.ok().stdout, "2\n");
        shell("exec \"$0\" queue take \"$1\" > /dev/null").await.ok();
        shell("exec \"$0\" queue take \"$1\" -- true >&-").await.ok();
        assert_eq!(queue(&connect, &["len", JOBS]).await.ok().stdout, "0\n");
    }

    async fn lines_that_arrive_together_are_put_in_batches_and_in_order(backend: Backend) {
        let server = backend.start().await;
        let connect = format!("{}{}", server.connect_string(), server.root());
        let lines: Vec<_> = (0..1_000).map(|number| number.to_string()).collect();
        let put = run_with(&connect, ["queue", "put", JOBS], &lines.join("\n")).await.ok();
        assert_eq!(put.stderr, "docent: put 1000 into /queues/jobs\n");
        let trips = round_trips(&server.front().trace());
        assert!(trips < 100, "{trips} round trips");
        let all = queue(&connect, &["take", JOBS, "--follow", "--nonblock"]).await.ok();
        assert_eq!(all.stdout.lines().collect::<Vec<_>>(), lines);
    }

    async fn a_line_that_is_too_long_is_reported_and_earlier_lines_are_put(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let input = format!("a\nb\nc\n{}\nd\ne\n", "x".repeat(2 << 20));
        let put = run_with(&connect, ["queue", "put", JOBS], &input).await;
        assert_eq!(put.code, 65, "{put:?}");
        assert!(put.stderr.ends_with("; put: lines 1 to 3, and none after\n"), "{put:?}");
        assert_eq!(queue(&connect, &["len", JOBS]).await.ok().stdout, "3\n");
        let long = "x".repeat(100_000);
        let items = [&["put", JOBS][..], &[long.as_str(); 15]].concat();
        queue(&connect, &items).await.ok();
        assert_eq!(queue(&connect, &["len", JOBS]).await.ok().stdout, "18\n");
    }

    async fn lines_that_were_put_before_a_signal_are_reported(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let mut putter = docent(&connect, ["queue", "put", JOBS]).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = putter.stdin.take().unwrap();
        stdin.write_all(b"a\nb\nc").await.unwrap();
        let length = async || queue(&connect, &["len", JOBS]).await.ok().stdout;
        eventually(PATIENCE, length, |length| length == "2\n").await.unwrap();
        // The next line is put once the outcome of the lines before it is known.
        stdin.write_all(b"\nd").await.unwrap();
        eventually(PATIENCE, length, |length| length == "3\n").await.unwrap();
        let pid = putter.id().and_then(|pid| Pid::from_raw(pid.cast_signed())).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        let ended = end(putter).await;
        assert_eq!(ended.code, 143);
        let messages = ["put: lines 1 to 2, perhaps line 3, and none after", "put: lines 1 to 3, and none after"];
        assert!(messages.iter().any(|messages| ended.stderr.contains(messages)), "{ended:?}");
        drop(stdin);
    }
}
