//! Verbs for data and servers, as processes against both servers.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue must fail")]

mod config;
mod discover;
mod discover_write;
mod docent_command;
mod doctor;
mod doctor_faults;
mod guide;
mod http;
mod inspect;
mod kinds;
mod prometheus;
mod proxies;
mod queue;
mod register;
