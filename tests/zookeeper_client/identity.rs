//! Identities of the client at the servers, which the crate does not ask for.

use crate::connect;
use docent::ErrorKind;
use docent_battery::{Backend, both_backends_in_real_time};

both_backends_in_real_time! {
    async fn whom_the_servers_see_is_not_told(backend: Backend) {
        let server = backend.start().await;
        let error = connect(&server).await.who_am_i().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains("session of Docent's own"), "{error}");
    }
}
