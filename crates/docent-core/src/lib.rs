//! docent-core
