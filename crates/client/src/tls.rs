//! The TLS of connections: certificates that the system trusts, with the rustls provider that the program installed, else
//! ring. Nothing is installed for the process.

use crate::Error;
use rustls::crypto::{CryptoProvider, ring};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use std::sync::Arc;

/// For plain HTTP the system's certificates are not read: a container may have none.
pub(crate) fn config(encrypted: bool) -> Result<ClientConfig, Error> {
    let provider = CryptoProvider::get_default().cloned().unwrap_or_else(|| Arc::new(ring::default_provider()));
    let failed = |error: rustls::Error| Error::Invalid(format!("TLS cannot be set up: {error}"));
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(failed)?;
    if !encrypted {
        return Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth());
    }
    Ok(builder.with_platform_verifier().map_err(failed)?.with_no_client_auth())
}
