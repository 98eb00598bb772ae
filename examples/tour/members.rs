use crate::stage::Stage;
use anyhow::ensure;
use docent::Membership;
use docent::discovery::MemberChange;
use futures_util::StreamExt;

const HOSTS: [&str; 3] = ["host-1", "host-2", "host-3"];

/// Hosts of a cluster join and leave, and a client watches.
pub(crate) async fn show(stage: &Stage) -> anyhow::Result<()> {
    stage.headline("Membership: the hosts of a cluster");
    let path = format!("{}/cluster", stage.root());
    let watcher = stage.client("watcher").await?;
    let members = Membership::new(&watcher, &path)?.members().await?;
    let mut changes = members.changes();
    let mut hosts = Vec::new();
    for host in HOSTS {
        let client = stage.client(host).await?;
        hosts.push((Membership::new(&client, &path)?.join_by_identity(host).await?, client));
    }
    let (mut joined, mut departed) = (0, Vec::new());
    while departed.len() < 2 {
        match changes.next().await {
            Some(Ok(MemberChange::Joined(peer))) => {
                joined += 1;
                stage.print("watcher", format_args!("{} joined", peer.id));
                if joined == HOSTS.len() {
                    ensure!(members.current().len() == HOSTS.len(), "the list does not show all hosts");
                    // One host leaves explicitly; the other leaves when its session ends.
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
                stage.print("watcher", format_args!("{} left", peer.id));
                departed.push(peer.id);
            }
            Some(_) => {}
            None => anyhow::bail!("the watcher's client was closed"),
        }
    }
    let ids: Vec<_> = members.current().into_iter().map(|peer| peer.id).collect();
    ensure!(ids.len() == 1 && &*ids[0] == HOSTS[0], "the remaining members are {ids:?}");
    for (member, client) in hosts {
        member.leave().await?;
        client.close().await;
    }
    watcher.close().await;
    Ok(())
}
