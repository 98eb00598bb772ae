//! Batteries of faults, tests on both servers and traces of frames, for Docent's own suites.

pub use docent_testkit::*;
