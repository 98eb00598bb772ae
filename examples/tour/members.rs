use crate::stage::Stage;
use anyhow::ensure;
use docent::Membership;
use docent::discovery::MemberChange;
use futures_util::StreamExt;

const HOSTS: [&str; 3] = ["host-1", "host-2", "host-3"];

/// Hosts of a cluster join and leave, and somebody watches.
pub(crate) async fn show(stage: &Stage) -> anyhow::Result<()> {
    stage.headline("Membership: who is in the cluster");
    let path = format!("{}/cluster", stage.root());
    let watcher = stage.client("watcher").await?;
    let members = Membership::new(&watcher, &path)?.members().await?;
    let mut changes = members.changes();
    let mut hosts = Vec::new();
    for host in HOSTS {
        let client = stage.client(host).await?;
        hosts.push((Membership::new(&client, &path)?.join_by_identity(host).await?, client));
    }
    let (mut joined, mut left) = (0, Vec::new());
    while left.len() < 2 {
        match changes.next().await {
            Some(Ok(MemberChange::Joined(peer))) => {
                joined += 1;
                stage.say("watcher", format_args!("{} is in", peer.id));
                if joined == HOSTS.len() {
                    ensure!(members.current().len() == HOSTS.len(), "the list does not show them all");
                    // One goes in order; the other goes with its session.
                    if let Some((member, client)) = hosts.pop() {
                        member.leave().await?;
                        client.close().await;
                    }
                    if let Some((_member, client)) = hosts.pop() {
                        client.close().await;
                    }
                }
            }
            Some(Ok(MemberChange::Left(peer))) => {
                stage.say("watcher", format_args!("{} is gone", peer.id));
                left.push(peer.id);
            }
            Some(_) => {}
            None => anyhow::bail!("the watcher's client was closed"),
        }
    }
    let ids: Vec<_> = members.current().into_iter().map(|peer| peer.id).collect();
    ensure!(ids.len() == 1 && &*ids[0] == HOSTS[0], "{ids:?} are left");
    for (member, client) in hosts {
        member.leave().await?;
        client.close().await;
    }
    watcher.close().await;
    Ok(())
}
