use crate::{rows, unique};
use docent::queue::{
    AckError, DeadLetter, DeadLetters, DeadReason, Deliveries, Delivery, PeekError, PutError, Queue,
    QueueBuilder, QueueLayout, SimpleQueue,
};

rows! { shared: DeadLetter, DeadLetters, DeadReason, Queue<u32>, QueueLayout, SimpleQueue }

rows! { error: AckError, PeekError, PutError }

unique! { Delivery<u32> }

rows! { sent: Deliveries<u32>, QueueBuilder<u32> }
