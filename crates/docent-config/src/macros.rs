/// True where the defect with this name is planted: never in a normal build. `docent-core`'s `planted.rs` has the catalogue.
#[cfg(docent_planted)]
macro_rules! planted {
    ($defect:ident) => {
        docent_core::planted::is(docent_core::planted::Planted::$defect)
    };
}

/// True where the defect with this name is planted: never in a normal build. `docent-core`'s `planted.rs` has the catalogue.
#[cfg(not(docent_planted))]
macro_rules! planted {
    ($defect:ident) => {
        false
    };
}
