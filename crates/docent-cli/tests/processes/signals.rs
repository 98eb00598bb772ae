//! Signals passed on to commands.

use crate::process::{is_alive, until_dead, until_stopped};
use crate::run::{Run, command, servers};
use docent_battery::{Backend, both_backends_in_real_time};
use rustix::process::Signal;

both_backends_in_real_time! {
    async fn signals_are_forwarded_to_the_command(backend: Backend) {
        let server = backend.start().await;
        let signals = [
            ("TERM", Signal::TERM),
            ("INT", Signal::INT),
            ("HUP", Signal::HUP),
            ("QUIT", Signal::QUIT),
            ("USR1", Signal::USR1),
            ("USR2", Signal::USR2),
        ];
        for (name, signal) in signals {
            let script = format!("trap 'echo {name}; exit 7' {name}; echo ready; while :; do sleep 0.02; done");
            let mut run = Run::start(&servers(&server), ["lock", "/a", "--", "sh", "-c", &script]);
            assert_eq!(run.line().await, "ready");
            run.signal(signal);
            assert_eq!(run.line().await, name);
            assert_eq!(run.end().await.code, 7, "{name}");
        }
    }

    async fn a_stopped_command_receives_a_termination_signal(backend: Backend) {
        let server = backend.start().await;
        let script = "trap 'exit 7' TERM; echo $$; kill -STOP $$; while :; do sleep 0.02; done";
        let mut run = Run::start(&servers(&server), ["lock", "/a", "--", "sh", "-c", script]);
        let command = run.number().await;
        until_stopped(command).await;
        run.signal(Signal::TERM);
        assert_eq!(run.end().await.code, 7);
    }

    async fn hup_and_quit_leave_no_orphans(backend: Backend) {
        let server = backend.start().await;
        for signal in [Signal::HUP, Signal::QUIT, Signal::TERM] {
            let script = "sleep 1000 & echo $$ $!; wait";
            let mut run = Run::start(&servers(&server), ["lock", "/a", "--", "sh", "-c", script]);
            let line = run.line().await;
            let processes: Vec<i32> = line.split(' ').map(|id| id.parse().unwrap()).collect();
            assert!(processes.iter().all(|process| is_alive(*process)));
            run.signal(signal);
            for process in processes {
                until_dead(process).await;
            }
            assert_eq!(run.end().await.code, 128 + signal.as_raw());
        }
    }

    async fn a_signal_that_is_ignored_at_startup_stays_ignored(backend: Backend) {
        let server = backend.start().await;
        let script = "echo ready; read line; echo $line";
        let docent = command(&servers(&server), ["lock", "/a", "--", "sh", "-c", script]);
        let docent = docent.as_std();
        // As `nohup` does.
        let mut nohup = tokio::process::Command::new("env");
        nohup.arg("--ignore-signal=HUP").args(docent.get_args().skip(1)).kill_on_drop(true).env_clear();
        nohup.envs(docent.get_envs().filter_map(|(name, value)| Some((name, value?))));
        nohup.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        nohup.stderr(std::process::Stdio::piped());
        let mut run = Run::of(&mut nohup);
        assert_eq!(run.line().await, "ready");
        run.signal(Signal::HUP);
        run.write("went on\n").await;
        assert_eq!(run.end().await.stdout, ["went on"]);
    }
}
