/// True where the defect with this name is planted: never in a normal build. `planted.rs` has the catalogue.
#[cfg(docent_planted)]
macro_rules! planted {
    ($defect:ident) => {
        $crate::planted::is($crate::planted::Planted::$defect)
    };
}

/// True where the defect with this name is planted: never in a normal build. `planted.rs` has the catalogue.
#[cfg(not(docent_planted))]
macro_rules! planted {
    ($defect:ident) => {
        false
    };
}
