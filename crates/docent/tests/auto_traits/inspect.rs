//! Reports about paths, and the types that create them.

use crate::rows;
use docent::inspect::{
    Barrier, Claim, ConfigReport, Contender, Counter, DeadLetter, DoubleBarrier, EarlierValue, Election,
    ElectionLayout, Ephemeral, Inspector, InspectorBuilder, Instance, InstanceState, Kind, LeftOut, Limits,
    Line, Live, LiveSurvey, Member, Membership, NodeText, NumberFormat, Partition, PartitionItem, Payload,
    Plain, Queue, QueueItem, QueueLayout, Recipe, Refusal, Registry, RegistryLayout, Report, Reports,
    Semaphore, ServerTime, Service, ServiceName, SessionNode, SessionReport, Since, Stake, StakeRole, Survey,
    SurveyEvent, Surveys, TimeSource, TimedLease, Value, Writer,
};
use docent::recipe::ContenderName;

rows! { shared: Inspector, InspectorBuilder, Limits, Report, Survey, SurveyEvent, Live, LiveSurvey, ContenderName<'static> }

rows! { shared:
    Barrier, Claim, ConfigReport, Contender, Counter, DeadLetter, DoubleBarrier, EarlierValue, Election, ElectionLayout,
    Ephemeral, Instance, InstanceState, Kind, LeftOut, Line, Member, Membership, NodeText, NumberFormat, Partition,
    PartitionItem, Payload, Plain, Queue, QueueItem, QueueLayout, Recipe, Refusal, Registry, RegistryLayout, Semaphore,
    ServerTime, Service, ServiceName, SessionNode, SessionReport, Since, Stake<'static>, StakeRole, TimeSource,
    TimedLease, Value, Writer,
}

rows! { stream: Reports, Surveys }
