//! Views that are being opened.

use crate::connect;
use crate::scene::{behind_proxy, orders, registry, until_ids};
use docent_battery::{Backend, Rule, both_backends};
use docent_proto::OpCode;
use docent_tests::{SESSION, soon};

both_backends! {
    async fn an_instance_registered_while_a_view_opens_is_seen(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let (client, proxy) = behind_proxy(&server, SESSION).await;
        // The folder does not exist when the view checks it, but exists when the reply arrives.
        let held = proxy.add(Rule::on(OpCode::Exists).path(|path| path.ends_with("/orders")).hold());
        let opening = tokio::spawn({
            let registry = registry(&client);
            async move { registry.typed_service::<String>("orders").await.unwrap() }
        });
        soon(held.fired()).await;
        let _one = soon(registry(&other).register(orders("1"))).await.unwrap();
        proxy.heal().await.unwrap();
        let view = soon(opening).await.unwrap();
        until_ids(&view, &["1"]).await;
    }
}
