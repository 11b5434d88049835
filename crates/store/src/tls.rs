//! The cryptography behind every TLS connection of this process: one rustls provider, ring; and authorities that an
//! operator trusts.
//!
//! HTTP clients take the provider that is installed for the process and panic if there is none, so each constructor of
//! a client calls [`install`] first. Connections to PostgreSQL get theirs from [`provider`].

use rustls::RootCertStore;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

/// Certificate authorities from a file. By default there are none.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Authorities(Arc<[CertificateDer<'static>]>);

impl Authorities {
    /// Reads a PEM file. A file without a certificate is an error: it would trust no server at all, or silently nothing
    /// more than before.
    pub fn read(path: &Path) -> Result<Authorities, String> {
        let wrong = |why: &dyn Display| format!("{}: {why}", path.display());
        let mut found = Vec::new();
        for certificate in CertificateDer::pem_file_iter(path).map_err(|error| wrong(&error))? {
            let certificate = certificate.map_err(|error| wrong(&error))?;
            RootCertStore::empty().add(certificate.clone()).map_err(|error| wrong(&error))?;
            found.push(certificate);
        }
        if found.is_empty() {
            return Err(wrong(&"there is no certificate in this file; it must have at least one in PEM format"));
        }
        Ok(Authorities(found.into()))
    }

    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.0
    }
}

/// Makes the provider the default of the process. Every call after the first changes nothing.
pub fn install() {
    if CryptoProvider::get_default().is_none() {
        // Fails only if another thread was faster, with the same provider.
        let _ = ring::default_provider().install_default();
    }
}

/// The provider of the process.
pub fn provider() -> Arc<CryptoProvider> {
    install();
    CryptoProvider::get_default().cloned().unwrap_or_else(|| Arc::new(ring::default_provider()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::version::{TLS12, TLS13};
    use std::io::Write;

    #[test]
    fn the_provider_speaks_both_versions_and_is_installed_once() {
        install();
        let (first, second) = (provider(), provider());
        assert!(Arc::ptr_eq(&first, &second));
        for version in [&TLS12, &TLS13] {
            assert!(first.cipher_suites.iter().any(|suite| suite.version() == version), "{version:?}");
        }
    }

    #[test]
    fn a_file_without_certificates_is_refused() {
        let missing = Authorities::read(Path::new("no-such-file.pem")).unwrap_err();
        assert!(missing.starts_with("no-such-file.pem: "), "{missing}");
        let key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        let junk = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for (text, part) in
            [("", "no certificate"), ("certificates", "no certificate"), (key, "no certificate"), (junk, "")]
        {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            let why = Authorities::read(file.path()).unwrap_err();
            assert!(why.starts_with(&file.path().display().to_string()) && why.contains(part), "{why}");
        }
    }
}
