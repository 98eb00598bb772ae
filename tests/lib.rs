//! Suites that span crates; the tests themselves are in the folders beside this file.
