//! The client's identities at the servers, which the crate `zookeeper-client` does not request.

use crate::connect;
use docent::ErrorKind;
use docent_battery::{Backend, both_backends_in_real_time};

both_backends_in_real_time! {
    async fn who_am_i_is_not_supported(backend: Backend) {
        let server = backend.start().await;
        let error = connect(&server).await.who_am_i().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains("session that Docent runs itself"), "{error}");
    }
}
