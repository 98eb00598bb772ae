//! The pages of the console, in a real browser.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod actions;
mod api;
mod browser;
mod commands;
mod dashboards;
mod harness;
mod hostile;
mod keys;
mod live;
mod long;
mod looks;
mod motion;
mod neighbours;
mod pages;
mod payloads;
mod pictures;
mod site;
mod text;
mod world;
