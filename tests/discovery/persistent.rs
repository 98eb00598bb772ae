//! Static and permanent instances, which do not belong to a session.

use crate::scene::{BASE, behind_proxy, orders, registry, until_ids, view};
use docent::discovery::{RegistrationStatus, ServiceType};
use docent::{CreateMode, ErrorKind};
use docent_battery::{Backend, Rule, both_backends};
use docent_proto::OpCode;
use docent_tests::{SESSION, connect, soon};

const ONE: &str = "/services/orders/1";

both_backends! {
    async fn a_static_or_permanent_instance_outlives_its_client_and_is_taken_over_by_id(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let view = view(&other).await;
        for kind in [ServiceType::Static, ServiceType::Permanent] {
            let client = connect(&server).await;
            let lasting = || orders("1").service_type(kind);
            let registration = soon(registry(&client).register(lasting())).await.unwrap();
            assert!(matches!(registration.status(), RegistrationStatus::Announced));
            soon(client.close()).await;
            drop(registration);
            let node = other.get(ONE).await.unwrap();
            assert_eq!(node.stat.owner, None);
            assert!(String::from_utf8_lossy(&node.data).contains(kind.name()));
            until_ids(&view, &["1"]).await;
            // A later process with the same id replaces the instance.
            let again = soon(registry(&other).register(lasting().payload("again".to_owned()))).await.unwrap();
            assert!(String::from_utf8_lossy(&other.get(ONE).await.unwrap().data).contains("again"));
            soon(again.update(lasting().payload("new".to_owned()))).await.unwrap();
            soon(again.set_enabled(false)).await.unwrap();
            until_ids(&view, &[]).await;
            assert_eq!(view.instances().get("1").unwrap().payload.as_deref(), Some("new"));
            soon(again.deregister()).await.unwrap();
            assert_eq!(other.exists(ONE).await.unwrap(), None);
        }
    }

    async fn lost_replies_neither_double_nor_lose_a_permanent_instance(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let (client, proxy) = behind_proxy(&server, SESSION).await;
        let lasting = || orders("1").service_type(ServiceType::Permanent);
        // One multi each creates, sets and deletes the node.
        for (op, nth) in [(OpCode::GetData, 1), (OpCode::Multi, 1), (OpCode::Multi, 2), (OpCode::Exists, 1), (OpCode::Multi, 3)] {
            let on = || Rule::on(op).nth(nth);
            for rule in [on().reset_before(), on().reset_after()] {
                let fired = proxy.add(rule);
                let registration = soon(registry(&client).register(lasting())).await.unwrap();
                soon(registration.update(lasting().payload(format!("{op:?}")))).await.unwrap();
                let text = String::from_utf8(other.get(ONE).await.unwrap().data.to_vec()).unwrap();
                assert!(text.contains(&format!("{op:?}")), "{text}");
                soon(registration.deregister()).await.unwrap();
                assert_eq!(other.exists(ONE).await.unwrap(), None);
                assert!(fired.has_fired(), "{op:?}");
            }
        }
    }

    async fn a_dynamic_and_a_permanent_instance_of_one_id_leave_each_other_alone(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let dynamic = soon(registry(&client).register(orders("1"))).await.unwrap();
        let lasting = || orders("1").service_type(ServiceType::Permanent);
        let error = soon(registry(&other).register(lasting())).await.unwrap_err();
        assert!(error.to_string().contains("dynamic"), "{error}");
        soon(dynamic.deregister()).await.unwrap();
        let permanent = soon(registry(&other).register(lasting())).await.unwrap();
        let error = soon(registry(&client).register(orders("1"))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NodeExists);
        assert!(error.to_string().contains("persistent"), "{error}");
        // Another client has replaced the node by an ephemeral one, which is not deleted.
        other.delete(ONE, None).await.unwrap();
        other.create(ONE, "{}", CreateMode::Ephemeral).await.unwrap();
        soon(permanent.deregister()).await.unwrap();
        assert_eq!(other.get(ONE).await.unwrap().data, "{}");
        assert_eq!(registry(&other).path(), BASE);
    }
}
