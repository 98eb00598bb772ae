//! Verbs of the command about data and servers, as processes, on both servers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod config;
mod discover;
mod docent_command;
mod doctor;
mod doctor_faults;
mod guide;
mod inspect;
mod kinds;
mod queue;
mod register;
