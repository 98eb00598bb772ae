/// Variables that decide which programs run and how, where files are created or found, and which proxies are
/// used; and variables that shells reserve, some of which cannot be set.
const NAMES: [&str; 87] = [
    // Shells.
    "PATH",
    "HOME",
    "IFS",
    "ENV",
    "SHELL",
    "CDPATH",
    "GLOBIGNORE",
    "FPATH",
    "ZDOTDIR",
    "PS0",
    "PS1",
    "PS2",
    "PS3",
    "PS4",
    "PROMPT",
    "PROMPT_COMMAND",
    "SHELLOPTS",
    "BASHOPTS",
    "POSIXLY_CORRECT",
    "PWD",
    "OLDPWD",
    "UID",
    "EUID",
    "GID",
    "EGID",
    "PPID",
    "ARGC",
    "GROUPS",
    "DIRSTACK",
    "FUNCNAME",
    "FUNCNEST",
    "LINENO",
    "OPTARG",
    "OPTIND",
    "RANDOM",
    "SECONDS",
    "MAILCHECK",
    "MAILPATH",
    "HISTFILE",
    "USER",
    "LOGNAME",
    // Programs that other programs start.
    "EDITOR",
    "VISUAL",
    "FCEDIT",
    "PAGER",
    "MANPAGER",
    "BROWSER",
    "LESSOPEN",
    "LESSCLOSE",
    "EXINIT",
    "VIMINIT",
    "MAKEFLAGS",
    "RSYNC_RSH",
    "CVS_RSH",
    "CC",
    "CXX",
    "RUSTC",
    "RUSTC_WRAPPER",
    "RUSTFLAGS",
    // Interpreters and runtimes.
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_EXTRA_CA_CERTS",
    "JAVA_TOOL_OPTIONS",
    "JAVA_OPTS",
    "JAVA_HOME",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "CLASSPATH",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "R_PROFILE",
    "GODEBUG",
    "GOFLAGS",
    // The C library, and libraries for TLS and HTTP.
    "TMPDIR",
    "TMP",
    "TEMP",
    "TZDIR",
    "LOCPATH",
    "NLSPATH",
    "GCONV_PATH",
    "HOSTALIASES",
    "TERMINFO",
    "OPENSSL_CONF",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CURL_HOME",
    "NO_PROXY",
];

/// Prefixes of such variables.
const PREFIXES: [&str; 20] = [
    "LD_", "DYLD_", "DOCENT_", "BASH_", "PYTHON", "PERL", "RUBY", "LUA_", "GIT_", "SSH_", "SUDO_", "NPM_",
    "PIP_", "CARGO_", "DOTNET_", "CORECLR_", "MALLOC_", "GLIBC_", "XDG_", "KSH_",
];

/// Suffix of the variables that name proxies.
const PROXY: &str = "_PROXY";

/// Returns true for a variable that data must not set, with any prefix.
pub(super) fn is_reserved(name: &str) -> bool {
    NAMES.contains(&name) || PREFIXES.iter().any(|one| name.starts_with(one)) || name.ends_with(PROXY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_by_which_data_becomes_a_program_are_reserved() {
        let known = [
            "PS4",
            "PYTHONPATH",
            "PYTHONSTARTUP",
            "PERL5OPT",
            "RUBYOPT",
            "NODE_OPTIONS",
            "GIT_SSH_COMMAND",
            "PROMPT_COMMAND",
            "EDITOR",
            "TMPDIR",
            "HTTP_PROXY",
            "ALL_PROXY",
            "BASH_ENV",
            "LD_PRELOAD",
        ];
        for name in known {
            assert!(is_reserved(name), "{name}");
        }
    }

    #[test]
    fn variables_that_shells_refuse_to_set_are_reserved() {
        for name in ["UID", "EUID", "PPID", "SHELLOPTS", "BASHOPTS", "BASH_VERSINFO"] {
            assert!(is_reserved(name), "{name}");
        }
    }

    #[test]
    fn names_of_settings_are_not_reserved() {
        for name in ["PER_SECOND", "DB_HOST", "NODE_ID", "PORT", "PATHS", "HOST"] {
            assert!(!is_reserved(name), "{name}");
        }
    }
}
