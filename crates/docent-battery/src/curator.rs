//! A real Curator, for tests that need one.

/// Curator's libraries, as Debian installs them.
pub const JARS: [&str; 5] = [
    "/usr/share/java/curator-client.jar",
    "/usr/share/java/curator-framework.jar",
    "/usr/share/java/curator-recipes.jar",
    "/usr/share/java/curator-x-discovery.jar",
    "/usr/share/java/slf4j-nop.jar",
];

/// How to install them.
pub const MISSING: &str =
    "install libcurator-recipes-java, libcurator-discovery-java and default-jdk-headless";
