use crate::{rows, unique};
#[cfg(feature = "tls")]
use docent::Tls;
use docent::cache::{
    ChildrenCache, ChildrenEvent, ChildrenEvents, ChildrenSnapshot, NodeCache, NodeChanges, TreeCache,
    TreeCacheBuilder, TreeEvent, TreeEvents, TreeSnapshot, WatchStream,
};
use docent::client::{
    Client, ClientBuilder, ClientIdentity, ConnectionState, ConnectionStatus, Error, ErrorKind, Gssapi,
    Health, Options, ParentKind, ProvedIdentity, RetryPolicy, RollbackPolicy, Sasl, SecretString,
    ShutdownNode, ShutdownReport, StateWatcher,
};
use docent::guard::{Fence, Held, Lost, LostReason, ParseFenceError};
use docent::node::CreatedOrSet;
use docent::node::DeleteAllError;
use docent::node::{
    Acl, Children, CreateMode, Created, Node, NodeAcl, Permissions, Stat, Transaction, TransactionResult,
};
use docent::recipe::{
    Ahead, CasLoop, ClaimRequest, ClaimResult, Hold, HoldSet, HookPanic, Hooks, KeptNode, KeptNodeBuilder,
    KeptStatus, Line, LineKey, Metric, MetricUnit, NodePath, Participant, Role, Series, SharedMap,
    SharedMapIter, SharedNode, Stage, SyncStream, Ticket, TicketBatch, VersionedNode, ViewLag, WaitError,
};
use docent::server::{
    Builder, EndCause, Follower, FollowerBuilder, KeepError, KeepFault, Limits, Link, Listening, NodeInfo,
    Server, SessionInfo, StartError, TcpBind, Transaction as Entry, TransactionKind,
};
use docent::time::{BootClock, ClockCheck, Timestamp, TokioClock};
use docent::transport::{ServerAddress, TcpTransport};
#[cfg(feature = "zookeeper-client")]
use docent::zookeeper_client::{self, ZookeeperClient};

rows! { shared:
    ChildrenCache, ChildrenEvent, ChildrenSnapshot, NodeCache,
    TreeCache, TreeCacheBuilder, TreeEvent, TreeSnapshot,
    Client, ClientBuilder, ClientIdentity, ConnectionState, ConnectionStatus, ErrorKind, Gssapi, Health, Options, ParentKind, ProvedIdentity,
    RetryPolicy, RollbackPolicy, Sasl, SecretString, ShutdownNode, ShutdownReport, Stage, StateWatcher,
    Fence, LostReason,
    Acl, Children, CreateMode, Created, Node, NodeAcl, Permissions, Stat, Transaction, TransactionResult,
    CreatedOrSet, KeptNodeBuilder, ViewLag, Ahead, ClaimRequest, KeptStatus, Line, LineKey, Metric, MetricUnit, NodePath,
    Participant, Role, Series, SharedMap<Node>, SharedMapIter<'static, Node>, SharedNode, VersionedNode,
    Builder, FollowerBuilder<'static>, EndCause, Limits, Link, NodeInfo, SessionInfo, Entry,
    TransactionKind,
    BootClock, ClockCheck, Timestamp, TokioClock,
    ServerAddress, TcpTransport,
    #[cfg(feature = "tls")] Tls,
    #[cfg(feature = "zookeeper-client")] ZookeeperClient,
    #[cfg(feature = "zookeeper-client-tls")] zookeeper_client::Tls,
}

rows! { stream: ChildrenEvents, NodeChanges, StateWatcher, TreeEvents, WatchStream<Node> }

rows! { error: DeleteAllError, Error, HookPanic, Lost, ParseFenceError, WaitError }

unique! { Held, Hold, HoldSet, Hooks, KeptNode, Ticket, TicketBatch, Follower, Server, Listening, TcpBind, ClaimResult, CasLoop }

// Internal type of streams.
rows! { sent: SyncStream<Node> }

// These types contain an error of the operating system, which is not `Clone`.
unique! { KeepError, KeepFault, StartError }
