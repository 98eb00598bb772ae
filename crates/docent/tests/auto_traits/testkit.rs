use crate::{rows, unique};
use docent::testkit::{
    Armed, ExpireError, FaultProxy, MemoryListener, MemoryNet, Missing, NotMet, Operation, Port, RealServer,
    StartError,
};

rows! { shared: Armed, MemoryNet, Operation }

rows! { error: Missing, NotMet }

unique! { FaultProxy, MemoryListener, Port, RealServer }

// These types contain an error of the operating system, which is not `Clone`.
unique! { ExpireError, StartError }
