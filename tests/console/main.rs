//! The pages of the console, in a real browser.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod browser;
mod commands;
mod driver;
mod harness;
mod site;
