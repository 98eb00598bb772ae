//! Properties that the codec has for all values and all bytes.

mod hostile;
mod round_trip;
mod strategies;
