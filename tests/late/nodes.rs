use crate::scene::Scene;
use docent::recipe::KeptNode;
use docent::{CreateMode, ErrorKind};
use docent_tests::{soon, until};

#[tokio::test(start_paused = true)]
async fn a_write_of_unknown_outcome_is_applied_after_its_session_moved_and_did_not_find_it() {
    let scene = Scene::start().await;
    let client = scene.client.clone();
    let write = scene.begin(async move { client.create("/late", "", CreateMode::Persistent).await }).await;
    let error = soon(write).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
    soon(scene.client.sync("/")).await.unwrap();
    assert_eq!(scene.client.exists("/late").await.unwrap(), None);
    scene.deliver();
    until(async || scene.other.exists("/late").await.unwrap().is_some()).await;
    // The leader now believes that the session belongs to the follower, and refuses the session's next write.
    // That only costs a link.
    soon(scene.client.create("/next", "", CreateMode::Ephemeral)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_ephemeral_node_does_not_reappear_after_it_was_deleted() {
    let scene = Scene::start().await;
    let client = scene.client.clone();
    let created = scene.begin(async move { client.create("/node", "", CreateMode::Ephemeral).await }).await;
    soon(created).await.unwrap().unwrap();
    soon(scene.client.ensure_absent("/node")).await.unwrap();
    scene.deliver();
    assert_eq!(scene.other.exists("/node").await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_registration_that_was_removed_does_not_reappear() {
    let scene = Scene::start().await;
    let client = scene.client.clone();
    let kept = scene.begin(async move {
        let node = KeptNode::new(&client, "/node", "ours").unwrap();
        node.present().await.map(|()| node)
    });
    let node = soon(kept.await).await.unwrap().unwrap();
    soon(node.remove()).await.unwrap();
    scene.deliver();
    assert_eq!(scene.other.exists("/node").await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_late_removal_does_not_affect_the_next_registration() {
    let scene = Scene::start().await;
    let node = KeptNode::new(&scene.client, "/node", "ours").unwrap();
    soon(node.present()).await.unwrap();
    let removed = scene.begin(async move { node.remove().await }).await;
    soon(removed).await.unwrap().unwrap();
    let next = KeptNode::new(&scene.other, "/node", "theirs").unwrap();
    soon(next.present()).await.unwrap();
    let czxid = scene.other.exists("/node").await.unwrap().unwrap().czxid;
    scene.deliver();
    assert_eq!(scene.other.exists("/node").await.unwrap().unwrap().czxid, czxid);
}

#[tokio::test(start_paused = true)]
async fn a_create_whose_future_was_dropped_is_undone_even_if_it_is_applied_late() {
    let scene = Scene::start().await;
    let client = scene.client.clone();
    let create = scene.begin(async move { client.create("/node", "", CreateMode::Ephemeral).await }).await;
    create.abort();
    assert!(create.await.unwrap_err().is_cancelled());
    scene.deliver();
    until(async || scene.other.exists("/node").await.unwrap().is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn one_of_two_creators_of_an_ephemeral_node_learns_that_it_exists() {
    let scene = Scene::start().await;
    let (one, two) = (scene.client.clone(), scene.client.clone());
    let both = async move {
        let create = |client: docent::Client| async move {
            client.create("/node", "same", CreateMode::Ephemeral).await
        };
        tokio::join!(create(one), create(two))
    };
    // Creates the second create's marker as well.
    let warm = |name: &'static str| scene.client.create(name, "", CreateMode::Ephemeral);
    let (first, second) = soon(async { tokio::join!(warm("/1"), warm("/2")) }).await;
    first.unwrap();
    second.unwrap();
    let created = scene.begin(both).await;
    let (one, two) = soon(created).await.unwrap();
    let refused = [one, two].into_iter().filter_map(Result::err).map(|error| error.kind());
    assert_eq!(refused.collect::<Vec<_>>(), [ErrorKind::NodeExists]);
}
