/// Returns true if the defect with this name, or one of these names, is planted; never in a normal build. The
/// catalogue is in `planted.rs`. The recipes of this workspace use this macro, too.
#[cfg(docent_planted)]
#[doc(hidden)]
#[macro_export]
macro_rules! planted {
    ($($defect:ident)|+) => {
        $($crate::planted::is($crate::planted::Planted::$defect))||+
    };
}

/// Returns true if the defect with this name, or one of these names, is planted; never in a normal build. The
/// catalogue is in `planted.rs`.
#[cfg(not(docent_planted))]
#[doc(hidden)]
#[macro_export]
macro_rules! planted {
    ($($defect:ident)|+) => {
        false
    };
}
