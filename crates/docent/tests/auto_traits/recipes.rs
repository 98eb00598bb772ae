use crate::{rows, unique};
use docent::config::{
    Change, CodecError, Config, ConfigBuilder, ConfigTree, Counted, Counter, CounterError, HistoryEntry,
    Json, KeyOrigin, LayeredChange, LayeredConfig, LayeredConfigBuilder, LayeredSnapshot,
    LayeredSubscription, NodeError, NodeModel, Origin, PathTemplate, Properties, PublishError, Raw,
    Rejection, RejectionReason, Revision, SharedCount, SharedValue, Snapshot, SubscribeError, Subscription,
    Toml, TreeChange, TreeSnapshot, TreeSubscription, TypedNode, TypedNodeChanges, Yaml,
};
#[cfg(feature = "tonic")]
use docent::discovery::BalancedChannel;
#[cfg(feature = "tower")]
use docent::discovery::{AttemptPolicy, Balanced, CallError, Discovered, Outcome, RetryBudget};
use docent::discovery::{
    Instance, Instances, Member, MemberChange, MemberChanges, Members, Membership, MembershipBuilder,
    Neighbour, OutlierPolicy, Peer, PickError, PickPolicy, Picked, Presence, Registration,
    RegistrationStatus, Registry, RegistryBuilder, RegistryLayout, Service, ServiceBuilder, ServiceChange,
    ServiceChanges, ServiceNames, ServiceType, Unreadable, UriPart, UriSpec,
};
use docent::election::{Election, ElectionBuilder, ElectionLayout, ElectionRun, Leader, Leaders, Leadership};
use docent::locks::{
    AcquireError, AnyLock, Barrier, BarrierError, DoubleBarrier, Entered, MultiGuard, MultiLock, Mutex,
    MutexBuilder, MutexGuard, NotAcquired, Obtained, Owner, ParseTurnFenceError, Partitioner,
    PartitionerBuilder, Permit, ReadGuard, RwLock, RwLockBuilder, Semaphore, SemaphoreBuilder, Share,
    ShareEnd, SharedLimit, SharedMutex, SharedMutexBuilder, SharedMutexGuard, TimedLease, TurnFence,
    WriteGuard,
};
use std::future::Ready;

rows! { shared:
    AnyLock, Barrier, DoubleBarrier, MultiLock, Mutex, MutexBuilder, SharedMutex, SharedMutexBuilder, TurnFence, NotAcquired, Owner, RwLock,
    RwLockBuilder, Semaphore,
    SemaphoreBuilder, SharedLimit, PartitionerBuilder, ShareEnd, TimedLease, Obtained,
    Election, ElectionBuilder, ElectionLayout, Leader,
    Instance<u32>, Instances<u32>, MemberChange, Members, Membership, MembershipBuilder, Neighbour, OutlierPolicy, Peer, PickPolicy,
    Presence, RegistrationStatus, Registry, RegistryBuilder, RegistryLayout, Service<u32>,
    ServiceBuilder<u32>, ServiceChange<u32>, ServiceType, Unreadable, UriPart, UriSpec,
    Change<u32>, Config<u32>, ConfigBuilder<u32>, ConfigTree<u32>, Counted<i64>, Counter<i64>,
    HistoryEntry<u32>, Json, Properties, Toml, Yaml, KeyOrigin, LayeredChange<u32>, LayeredConfig<u32>, LayeredConfigBuilder<u32>,
    LayeredSnapshot<u32>, LayeredSubscription<u32>, NodeModel<u32>, Origin, PathTemplate, Raw, Rejection, RejectionReason, Revision, SharedCount, SharedValue,
    Snapshot<u32>, Subscription<u32>, TreeChange<u32>, TreeSnapshot<u32>, TreeSubscription<u32>, TypedNode<u32>,
}

rows! { stream:
    LayeredSubscription<u32>, Leaders, MemberChanges, ServiceChanges<u32>, ServiceNames, Subscription<u32>, TreeSubscription<u32>, TypedNodeChanges<u32>,
}

rows! { error: AcquireError, BarrierError, ParseTurnFenceError, PickError, CodecError, CounterError, NodeError, PublishError, SubscribeError }

unique! {
    Entered, MultiGuard, MutexGuard, SharedMutexGuard, Partitioner, Permit, Share, ReadGuard, WriteGuard, Leadership, Member, Picked<u32>,
    Registration,
}

// The run of an election contains the user's future, and is shareable if that future is.
unique! { ElectionRun<Ready<()>> }

#[cfg(feature = "tower")]
unique! { Discovered<u32, fn()> }

#[cfg(feature = "tower")]
type Calls = Balanced<u32, tower::util::BoxCloneService<String, String, std::io::Error>, String>;

#[cfg(feature = "tower")]
rows! { shared: AttemptPolicy, Calls, Outcome, RetryBudget }

#[cfg(feature = "tower")]
rows! { error: CallError<std::fmt::Error> }

#[cfg(feature = "tonic")]
rows! { shared: BalancedChannel<u32> }
