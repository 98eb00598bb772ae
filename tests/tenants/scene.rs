use docent::client::ClientBuilder;
use docent::node::{Acl, Permissions};
use docent::{Client, CreateMode};
use docent_battery::TestServer;
use docent_tests::{builder, connect, soon};

/// A client with its own credentials, on a tree that it shares with other clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tenant {
    /// A client without credentials.
    Anyone,
    A,
    B,
    /// A client that `acl_for` of [`A`](Self::A) admits to `/config`, and to no other folder of A.
    Operator,
}

/// The tenants of a tree.
pub(crate) const TENANTS: [Tenant; 4] = [Tenant::Anyone, Tenant::A, Tenant::B, Tenant::Operator];

impl Tenant {
    fn name(self) -> &'static str {
        match self {
            Self::Anyone => "anyone",
            Self::A => "a",
            Self::B => "b",
            Self::Operator => "operator",
        }
    }

    /// Returns the tenant's entry of an access control list.
    fn acl_entry(self, permissions: Permissions) -> Acl {
        match self {
            Self::Anyone => Acl::new(permissions, "world", "anyone"),
            _ => Acl::digest(self.name(), "word", permissions),
        }
    }

    /// The folder below which the tenant may write if the root is closed.
    pub(crate) fn home(self) -> &'static str {
        match self {
            Self::Anyone => "/open",
            Self::A => "/svc-a",
            Self::B => "/svc-b",
            Self::Operator => "/config",
        }
    }

    pub(crate) fn builder(self, server: &TestServer) -> ClientBuilder {
        self.through(server, server.connect_string())
    }

    pub(crate) fn through(self, server: &TestServer, connect_string: impl AsRef<str>) -> ClientBuilder {
        let builder = builder(server, connect_string);
        match self {
            Self::Anyone => builder,
            _ => builder.auth_digest(self.name(), "word").allow_plaintext_auth().acl_for(|path| {
                let admitted = [Self::A, Self::Operator].map(|tenant| tenant.acl_entry(Permissions::ALL));
                path.starts_with("/config").then(|| admitted.into())
            }),
        }
    }

    pub(crate) async fn connect(self, server: &TestServer) -> Client {
        soon(self.builder(server).connect()).await.unwrap()
    }
}

/// Kind of tree that tenants share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tree {
    /// Every client may create nodes at the root, which is ZooKeeper's default.
    Open,
    /// Every client may read the root, and each tenant may write only below its own folder.
    Closed,
    /// An open tree with the folder of an earlier version, which only its creator may use.
    Abandoned,
}

pub(crate) const TREES: [Tree; 3] = [Tree::Open, Tree::Closed, Tree::Abandoned];

/// Returns the settings of an administrator, who owns the root.
pub(crate) fn administrator(server: &TestServer) -> ClientBuilder {
    let builder = builder(server, server.connect_string());
    builder.auth_digest("administrator", "word").allow_plaintext_auth().acl([Acl::open_unsafe()])
}

impl Tree {
    /// Creates the tree at the root of the tests' namespace.
    pub(crate) async fn lay_out(self, server: &TestServer) {
        let admin = soon(administrator(server).connect()).await.unwrap();
        match self {
            Self::Open => {}
            Self::Closed => {
                for tenant in TENANTS {
                    let mut list = vec![tenant.acl_entry(Permissions::ALL)];
                    if tenant == Tenant::Operator {
                        list.push(Tenant::A.acl_entry(Permissions::ALL));
                    }
                    admin.create(tenant.home(), "", CreateMode::Persistent).await.unwrap();
                    admin.set_acl(tenant.home(), list, None).await.unwrap();
                }
                let root = [Acl::read_all(), Acl::digest("administrator", "word", Permissions::ALL)];
                admin.set_acl("/", root, None).await.unwrap();
            }
            Self::Abandoned => {
                admin.create("/_docent/markers", "", CreateMode::Persistent).await.unwrap();
                let creator = || [Acl::digest("earlier", "word", Permissions::ALL)];
                admin.set_acl("/_docent/markers", creator(), None).await.unwrap();
                admin.set_acl("/_docent", creator(), None).await.unwrap();
            }
        }
        soon(admin.close()).await;
    }
}

/// Returns the names of the nodes at the root.
pub(crate) async fn at_root(server: &TestServer) -> Vec<String> {
    let client = connect(server).await;
    let mut names = client.children("/").await.unwrap().names;
    names.sort();
    soon(client.close()).await;
    names
}
