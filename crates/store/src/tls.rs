//! The cryptography behind every TLS connection of this process: one rustls provider, ring.
//!
//! HTTP clients take the provider that is installed for the process and panic if there is none, so each constructor of
//! a client calls [`install`] first. Connections to PostgreSQL get theirs from [`provider`].

use rustls::crypto::{CryptoProvider, ring};
use std::sync::Arc;

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

    #[test]
    fn the_provider_speaks_both_versions_and_is_installed_once() {
        install();
        let (first, second) = (provider(), provider());
        assert!(Arc::ptr_eq(&first, &second));
        for version in [&TLS12, &TLS13] {
            assert!(first.cipher_suites.iter().any(|suite| suite.version() == version), "{version:?}");
        }
    }
}
