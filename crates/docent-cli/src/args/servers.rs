//! Client settings from options, variables and the file of contexts.

use super::Global;
use super::contexts::{Contexts, ContextsFile};
use crate::child::OWN_VARIABLES;
use crate::exit::Failure;
use docent::client::Options;
use std::ffi::OsString;

const CONNECT: &str = "DOCENT_CONNECT";

/// Variable that names the file of contexts. It is not a client setting.
const CONTEXTS: &str = "DOCENT_CONTEXTS";

impl Global {
    /// Returns the client settings from these options and the environment of the process.
    ///
    /// # Errors
    /// `Usage` if no servers are given or a setting breaks its rule.
    pub(crate) fn client_options(&self) -> Result<Options, Failure> {
        self.client_options_with(&std::env::vars_os().collect::<Vec<_>>())
    }

    /// Returns the file of contexts that these options or the environment name.
    ///
    /// # Errors
    /// `Usage` if it cannot be read, or a setting in it breaks its rule.
    pub(crate) fn contexts(&self) -> Result<ContextsFile, Failure> {
        ContextsFile::read(self.contexts_file.as_deref(), |name| std::env::var_os(name))
    }

    fn client_options_with(&self, vars: &[(OsString, OsString)]) -> Result<Options, Failure> {
        let var = |name: &str| vars.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        let contexts = || Contexts::read(self.contexts_file.as_deref(), var);
        let given = self.connect.as_ref().filter(|connect| !connect.is_empty()).cloned();
        let is_in_vars = var(CONNECT).is_some_and(|connect| !connect.is_empty());
        let mut options = match (&self.context, given) {
            // Servers and credentials that were named together stay together: no variable may redirect them.
            (Some(name), _) => contexts()?.named(name)?,
            (None, Some(connect)) => with_variables(Options::new(connect), vars, |name| name != CONNECT)?,
            (None, None) if is_in_vars => with_variables(Options::new(""), vars, |_| true)?,
            (None, None) => with_variables(contexts()?.current()?.ok_or_else(no_servers)?, vars, |_| true)?,
        };
        self.overlay(&mut options);
        let has_tls = options.tls_ca_file.is_some();
        if options.credentials_file.is_some() && !has_tls && !options.allow_plaintext_auth {
            let ways =
                "give --tls-ca, or --allow-plaintext-auth to send the password where others may read it";
            return Err(Failure::usage(format!("credentials need TLS: {ways}")));
        }
        Ok(options)
    }

    /// Overrides settings with the options that were given.
    fn overlay(&self, options: &mut Options) {
        fn set<T: Clone>(to: &mut Option<T>, given: &Option<T>) {
            if given.is_some() {
                to.clone_from(given);
            }
        }
        set(&mut options.session_timeout, &self.session_timeout);
        set(&mut options.operation_timeout, &self.timeout);
        set(&mut options.server_tick, &self.server_tick);
        set(&mut options.credentials_file, &self.auth_file);
        // A client has one identity for SASL.
        if self.sasl_gssapi {
            (options.sasl_gssapi, options.sasl_credentials_file) = (true, None);
        }
        if self.sasl_file.is_some() {
            (options.sasl_gssapi, options.sasl_service, options.sasl_server_principal) = (false, None, None);
        }
        // A principal for all servers leaves nothing for the service to decide.
        if self.sasl_service.is_some() {
            options.sasl_server_principal = None;
        }
        if self.sasl_server_principal.is_some() {
            options.sasl_service = None;
        }
        set(&mut options.sasl_credentials_file, &self.sasl_file);
        set(&mut options.sasl_service, &self.sasl_service);
        set(&mut options.sasl_server_principal, &self.sasl_server_principal);
        set(&mut options.tls_ca_file, &self.tls_ca);
        set(&mut options.tls_cert_file, &self.tls_cert);
        set(&mut options.tls_key_file, &self.tls_key);
        set(&mut options.tls_server_name, &self.tls_server_name);
        options.allow_plaintext_auth |= self.allow_plaintext_auth;
        options.read_only |= self.read_only;
    }
}

/// Overrides settings with the variables whose names are `wanted`.
fn with_variables(
    options: Options,
    vars: &[(OsString, OsString)],
    wanted: impl Fn(&OsString) -> bool,
) -> Result<Options, Failure> {
    let is_setting = |name: &OsString| name != CONTEXTS && !OWN_VARIABLES.iter().any(|own| name == own);
    let settings = vars.iter().filter(|(name, _)| is_setting(name) && wanted(name)).cloned();
    options.with_vars(settings).map_err(|error| Failure::usage(error.to_string()))
}

fn no_servers() -> Failure {
    let ways = "give --connect zk1:2181,zk2:2181, set DOCENT_CONNECT, or name a --context";
    Failure::usage(format!("no servers given: {ways}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn vars(vars: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        vars.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    #[test]
    fn an_option_overrides_a_variable() {
        let global = Global {
            connect: Some("given:1".to_owned()),
            timeout: Some(Duration::from_secs(3)),
            ..Global::default()
        };
        let vars = vars(&[
            ("DOCENT_CONNECT", "var:1"),
            ("DOCENT_OPERATION_TIMEOUT", "9s"),
            ("DOCENT_SESSION_TIMEOUT", "30s"),
        ]);
        let options = global.client_options_with(&vars).unwrap();
        assert_eq!(options.connect, "given:1");
        assert_eq!(options.operation_timeout, Some(Duration::from_secs(3)));
        assert_eq!(options.session_timeout, Some(Duration::from_secs(30)));
    }

    #[test]
    fn an_option_for_sasl_replaces_the_identity_of_variables() {
        let given = |global: Global, settings: &[(&str, &str)]| {
            let global = Global { connect: Some("given:1".to_owned()), ..global };
            global.client_options_with(&vars(settings)).unwrap()
        };
        let ticket = Global { sasl_gssapi: true, ..Global::default() };
        let options =
            given(ticket, &[("DOCENT_SASL_CREDENTIALS_FILE", "/run/sasl"), ("DOCENT_SASL_SERVICE", "zk")]);
        assert_eq!((options.sasl_gssapi, options.sasl_credentials_file), (true, None));
        assert_eq!(options.sasl_service.as_deref(), Some("zk"));
        let principal = Global { sasl_server_principal: Some("zk/all".to_owned()), ..Global::default() };
        let options = given(principal, &[("DOCENT_SASL_GSSAPI", "true"), ("DOCENT_SASL_SERVICE", "zk")]);
        assert_eq!((options.sasl_service, options.sasl_server_principal.as_deref()), (None, Some("zk/all")));
        let file = Global { sasl_file: Some("/run/sasl".into()), ..Global::default() };
        let options = given(file, &[("DOCENT_SASL_GSSAPI", "true"), ("DOCENT_SASL_SERVICE", "zk")]);
        assert_eq!((options.sasl_gssapi, options.sasl_service), (false, None));
        assert_eq!(options.sasl_credentials_file, Some("/run/sasl".into()));
    }

    #[test]
    fn a_named_context_takes_nothing_from_variables() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("contexts.toml");
        std::fs::write(&file, "[contexts.shop]\nconnect = \"zk1:1/shop\"").unwrap();
        let global =
            Global { context: Some("shop".to_owned()), contexts_file: Some(file), ..Global::default() };
        let vars = vars(&[("DOCENT_CONNECT", "var:1"), ("DOCENT_SESSION_TIMEOUT", "30s")]);
        let options = global.client_options_with(&vars).unwrap();
        assert_eq!((&*options.connect, options.session_timeout), ("zk1:1/shop", None));
    }

    #[test]
    fn a_variable_overrides_the_current_context() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("contexts.toml");
        let context =
            "connect = \"zk1:1/shop\"\nsession_timeout = \"9s\"\nallow_plaintext_auth = true\nlabel = \"a\"";
        std::fs::write(&file, format!("current = \"shop\"\n[contexts.shop]\n{context}")).unwrap();
        let global = Global { contexts_file: Some(file), ..Global::default() };
        let settings = [("DOCENT_SESSION_TIMEOUT", "30s"), ("DOCENT_ALLOW_PLAINTEXT_AUTH", "false")];
        let options = global.client_options_with(&vars(&settings)).unwrap();
        assert_eq!(options.session_timeout, Some(Duration::from_secs(30)));
        assert_eq!((&*options.connect, options.label.as_deref()), ("zk1:1/shop", Some("a")));
        assert!(!options.allow_plaintext_auth);
        // Other servers: no setting of the context applies to them.
        let other = global.client_options_with(&vars(&[("DOCENT_CONNECT", "var:1")])).unwrap();
        assert_eq!((&*other.connect, other.label, other.session_timeout), ("var:1", None, None));
        let bad = global.client_options_with(&vars(&[("DOCENT_SESSION_TIMEOUT", "soon")])).unwrap_err();
        assert!(bad.to_string().contains("DOCENT_SESSION_TIMEOUT"), "{bad}");
    }

    #[test]
    fn without_servers_the_error_names_how_to_configure_them() {
        let failure = Global::default().client_options_with(&vars(&[("HOME", "/nowhere")])).unwrap_err();
        assert!(failure.to_string().contains("--connect"), "{failure}");
        let empty = vars(&[("DOCENT_CONNECT", ""), ("HOME", "/nowhere")]);
        assert!(Global::default().client_options_with(&empty).is_err());
    }
}
