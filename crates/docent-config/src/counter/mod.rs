mod value;

pub use value::{Counted, Counter, CounterError, Integer};
