/// Kind of command: a script of bash that prints `ready`, and the properties of its processes. Each process
/// inherits descriptor 9, by which the next holder finds the processes that are still alive.
#[derive(Debug)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) script: &'static str,
    pub(super) shape: Shape,
}

/// Property of a command that decides whether a process may survive some faults, as the README says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// The command is one process.
    One,
    /// The command has further processes, which show docent's mark.
    Many,
    /// A process outside of the group does not show docent's mark.
    Unmarked,
    /// A process belongs to a user whom docent may not kill.
    Foreign,
}

use Shape::{Foreign, Many, One, Unmarked};

/// A job that ignores requests to stop. Scripts start it with `bash -c "$JOB"`.
pub(super) const JOB: &str =
    "trap '' TERM INT HUP; echo ready; while test $SECONDS -lt 300; do sleep 0.05; done";

/// A daemon that runs `@ARGV`, in perl: its parents end immediately.
pub(super) const DAEMON: &str = "fork and exit; setsid; fork and exit; exec @ARGV";

/// A job that becomes root and ignores requests to stop, in perl.
pub(super) const ROOT: &str =
    "$< = $> = 0; $SIG{TERM} = $SIG{INT} = 'IGNORE'; $| = 1; print \"ready\\n\"; sleep 1 while 1";

pub(super) const KINDS: [Kind; 19] = [
    Kind { name: "plain program", script: "echo ready; exec sleep 600", shape: One },
    Kind { name: "shell that ignores TERM", script: "eval \"$JOB\"", shape: Many },
    Kind { name: "timeout, cleanup", script: "timeout 600 bash -c \"$JOB\"; sleep 600", shape: Many },
    Kind { name: "job control", script: "set -m; bash -c \"$JOB\" & bash -c \"$JOB\" & wait", shape: Many },
    Kind { name: "setsid", script: "setsid bash -c \"$JOB\" & wait", shape: Many },
    Kind { name: "daemon", script: "perl -MPOSIX -e \"$DAEMON\" bash -c \"$JOB\"; sleep 600", shape: Many },
    Kind { name: "daemon, leader ends", script: "perl -MPOSIX -e \"$DAEMON\" bash -c \"$JOB\"", shape: Many },
    Kind {
        name: "cleared environment",
        script: "setsid env -i \"PATH=$PATH\" bash -c \"$JOB\" & wait",
        shape: Unmarked,
    },
    Kind {
        name: "daemon without environment",
        script: "perl -MPOSIX -e \"$DAEMON\" env -i \"PATH=$PATH\" bash -c \"$JOB\"; sleep 600",
        shape: Unmarked,
    },
    Kind {
        name: "title over environment",
        script: "perl -MPOSIX -e 'setsid; $0 = \"title \" x 900; $SIG{TERM} = \"IGNORE\"; $| = 1; \
                 print \"ready\\n\"; sleep 1 while 1' & wait",
        shape: Unmarked,
    },
    Kind {
        name: "groups of parallel jobs",
        script: "perl -e 'for (1 .. 4) { fork or (setpgrp(0, 0), exec \"bash\", \"-c\", $ENV{JOB}) } \
                 wait for 1 .. 4'",
        shape: Many,
    },
    Kind {
        name: "new session",
        script: "perl -MPOSIX -e 'fork or (setsid, exec \"bash\", \"-c\", $ENV{JOB}); wait'",
        shape: Many,
    },
    Kind {
        name: "other user",
        script: "test \"$(id -u)\" != 0 && eval \"$JOB\"; \
                 exec setpriv --reuid 65534 --regid 65534 --clear-groups bash -c \"$JOB\"",
        shape: Many,
    },
    Kind {
        name: "other user, new session",
        script: "test \"$(id -u)\" != 0 && eval \"$JOB\"; \
                 setsid setpriv --reuid 65534 --regid 65534 --clear-groups bash -c \"$JOB\" & wait",
        shape: Many,
    },
    Kind { name: "set-uid program", script: "\"$BECOME_ROOT\" -e \"$ROOT\" & wait", shape: Foreign },
    Kind {
        name: "forks continuously",
        script: "perl -MPOSIX -e '$SIG{CHLD} = $SIG{TERM} = \"IGNORE\"; $| = 1; print \"ready\\n\"; for (1 .. 9000) { \
                 fork or (setsid, sleep(2), exit); select undef, undef, undef, 0.02 }' & wait",
        shape: Many,
    },
    Kind {
        name: "hops from process to process",
        script: "perl -MPOSIX -e '$SIG{TERM} = \"IGNORE\"; $| = 1; print \"ready\\n\"; for (1 .. 20000) { \
                 fork and exit; setsid; select undef, undef, undef, 0.001 }' & sleep 600",
        shape: Many,
    },
    Kind {
        name: "stopped process",
        script: "setsid bash -c 'echo ready; kill -STOP $$' & wait",
        shape: Many,
    },
    Kind {
        name: "nested docent",
        script: "\"$DOCENT\" lock \"$DOCENT_PATH-inner\" -- bash -c \"$JOB\"",
        shape: Many,
    },
];
