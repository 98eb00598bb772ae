//! What holds of the codec for all values and all bytes.

mod hostile;
mod round_trip;
mod strategies;
