use crate::{rows, unique};
use docent::queue::{
    AckError, DeadLetter, DeadLetters, DeadReason, Deliveries, Delivery, PeekError, PutError, PutOptions,
    Queue, QueueBuilder, QueueLayout, QueuedItem, SimpleQueue,
};

rows! { shared: DeadLetter, DeadLetters<u32>, DeadReason, PutOptions, Queue<u32>, QueueBuilder<u32>, QueueLayout, QueuedItem, SimpleQueue }

rows! { error: AckError, PeekError, PutError }

unique! { Delivery<u32> }

rows! { stream: Deliveries<u32> }
