//! docent
