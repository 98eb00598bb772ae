//! docent-server
