//! Requests that are sent by `pick`, and teach it.

mod calls;
mod copies;
mod faults;
mod load;
mod scene;
