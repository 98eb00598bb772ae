//! docent-testkit
