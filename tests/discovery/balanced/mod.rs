//! Requests that are sent with `pick` and report their outcomes to the view.

mod calls;
mod copies;
mod faults;
mod load;
mod scene;
