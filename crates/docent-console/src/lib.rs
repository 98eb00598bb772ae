#![doc = include_str!("../README.md")]

mod access;
mod console;
mod pages;
mod web;
mod world;

pub use access::{Access, AccessError};
pub use console::{Console, ConsoleBuilder};
