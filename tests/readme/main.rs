//! The programs of the README, which `cargo xtask check` keeps identical to the README.

mod start {
    include!("start.rs");

    #[test]
    fn the_program_of_the_readme_runs_as_it_is_pasted() {
        main().expect("the program runs without external servers");
    }
}
