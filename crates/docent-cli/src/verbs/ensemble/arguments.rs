use clap::Args;

/// Show the vital figures of all servers in one table: mode, version, last transaction, latency, connections,
/// queued requests, nodes and watches.
///
/// The figures come from the four-letter words srvr and mntr, without a session. ZooKeeper enables only srvr
/// by default: the number of watches needs `4lw.commands.whitelist=srvr,mntr` in zoo.cfg. Words are sent
/// without TLS, so a port that requires TLS is listed as such. docent exits with 69 if no server answers.
#[derive(Debug, Args)]
pub(crate) struct Arguments {}
