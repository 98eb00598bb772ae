//! Paths in the log: errors name them as the field `path` does, with chroot and namespace.

use crate::children_cache::all_but_read;
use crate::connect;
use crate::secrets::Printed;
use docent::node::Acl;
use docent::recipe::KeptNode;
use docent::{CreateMode, Election};
use docent_battery::Backend;
use docent_tests::soon;
use futures_util::StreamExt;

#[tokio::test(start_paused = true)]
async fn an_error_in_the_log_names_the_path_at_the_servers() {
    let (printed, _logging) = Printed::from_here_on();
    let server = Backend::Memory.start().await;
    let (client, other) = (connect(&server).await, connect(&server).await);
    for (path, acl) in [("/closed", Acl::read_all()), ("/secret", all_but_read())] {
        other.create(path, "", CreateMode::Persistent).await.unwrap();
        other.set_acl(path, [acl], None).await.unwrap();
    }
    let kept = KeptNode::new(&client, "/closed/x", "").unwrap();
    let refused = soon(kept.present()).await.unwrap_err();
    assert_eq!(refused.path(), Some("/closed/x"));
    let election = Election::builder(&client, "/secret").id("a").build().unwrap();
    let unread = soon(election.observe().next()).await.unwrap().unwrap_err();
    assert_eq!(unread.path(), Some("/secret"));
    for (text, path) in
        [("cannot create or write the node", "/closed/x"), ("cannot determine the leader", "/secret")]
    {
        let lines = printed.lines_with(text);
        let named = |line: &String| line.matches(&format!("{}{path}", server.root())).count() == 2;
        assert!(!lines.is_empty() && lines.iter().all(named), "{lines:#?}");
    }
}
