//! docent-locks
