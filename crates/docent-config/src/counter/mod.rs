mod integer;
mod value;

pub use integer::Integer;
pub use value::{Counted, Counter, CounterError};
