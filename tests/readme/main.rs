//! The programs of the README, as they stand there: `cargo xtask check` keeps them equal.

mod start {
    include!("start.rs");

    #[test]
    fn the_program_of_the_readme_runs_as_it_is_pasted() {
        main().expect("it needs nothing but itself");
    }
}
