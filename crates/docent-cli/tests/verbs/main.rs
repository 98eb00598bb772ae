//! Verbs for data and servers, as processes against both servers.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue must fail")]

mod browser;
mod completions;
mod config;
mod config_files;
mod console;
mod contexts;
mod discover;
mod discover_write;
mod docent_command;
mod doctor;
mod doctor_faults;
mod ensemble;
mod guide;
mod http;
mod inspect;
mod json;
mod kinds;
mod prometheus;
mod proxies;
mod queue;
mod read_only;
mod register;
mod sessions;
mod wait;
