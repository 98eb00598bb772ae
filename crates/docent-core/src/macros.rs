/// True where the defect with this name, or one of these names, is planted: never in a normal build.
/// `planted.rs` has the catalogue. The recipes of this workspace use it, too.
#[cfg(docent_planted)]
#[doc(hidden)]
#[macro_export]
macro_rules! planted {
    ($($defect:ident)|+) => {
        $($crate::planted::is($crate::planted::Planted::$defect))||+
    };
}

/// True where the defect with this name, or one of these names, is planted: never in a normal build.
/// `planted.rs` has the catalogue.
#[cfg(not(docent_planted))]
#[doc(hidden)]
#[macro_export]
macro_rules! planted {
    ($($defect:ident)|+) => {
        false
    };
}
