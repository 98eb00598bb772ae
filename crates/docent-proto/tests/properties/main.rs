//! Properties of the codec that hold for all values and all bytes.

mod hostile;
mod round_trip;
mod strategies;
