use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};

/// Authority that issues certificates.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// Validity period of a certificate.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Validity {
    Now,
    Over,
    Later,
}

/// A certificate with its key.
pub(crate) struct Issued {
    chain: String,
    key: KeyPair,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "an authority made for a test");
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// Issues a certificate for DNS names and IP addresses.
    pub(crate) fn issue(&self, names: &[&str], validity: Validity) -> Issued {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names.clone()).unwrap();
        params.distinguished_name.push(DnType::CommonName, names[0].clone());
        let (from, until) = match validity {
            Validity::Now => (2000, 4000),
            Validity::Over => (2000, 2001),
            Validity::Later => (3999, 4000),
        };
        params.not_before = date_time_ymd(from, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        let key = KeyPair::generate().unwrap();
        let chain = params.signed_by(&key, &self.0).unwrap().pem();
        Issued { chain, key }
    }
}

impl Issued {
    pub(crate) fn chain(&self) -> String {
        self.chain.clone()
    }

    pub(crate) fn key(&self) -> String {
        self.key.serialize_pem()
    }
}
