use crate::{rows, unique};
use docent::queue::{
    AckError, Consume, DeadLetter, DeadLetters, DeadReason, Deliveries, Delivery, PeekError, PutError,
    PutOptions, Queue, QueueBuilder, QueueLayout, QueuedItem, SimpleQueue,
};
use std::future::Ready;

rows! { shared: DeadLetter, DeadLetters<u32>, DeadReason, PutOptions, Queue<u32>, QueueBuilder<u32>, QueueLayout, QueuedItem, SimpleQueue }

rows! { error: AckError, PeekError, PutError }

unique! { Delivery<u32> }

rows! { stream: Deliveries<u32> }

// A consumer contains the user's work, and is shareable if that work is.
unique! { Consume<Ready<Result<(), docent::Error>>> }
