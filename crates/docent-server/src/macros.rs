/// Returns whether the named defect is planted; always `false` in a normal build. `planted.rs` has the
/// catalogue.
#[cfg(docent_planted)]
macro_rules! planted {
    ($defect:ident) => {
        $crate::planted::is($crate::planted::Planted::$defect)
    };
}

/// Returns whether the named defect is planted; always `false` in a normal build. `planted.rs` has the
/// catalogue.
#[cfg(not(docent_planted))]
macro_rules! planted {
    ($defect:ident) => {
        false
    };
}
