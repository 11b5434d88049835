//! TLS connections to the database. Certificates are verified against the system's trust store or a given CA file.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::client;

/// Used if the URL's `sslmode` requires TLS or the server offers it.
#[derive(Clone)]
pub struct Tls(Arc<ClientConfig>);

impl Tls {
    /// Trusts the system's certificate authorities, or only those in the file.
    pub fn new(ca_file: Option<&Path>) -> Result<Tls, String> {
        let builder = ClientConfig::builder_with_provider(crate::tls::provider()).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| error.to_string())?;
        let config = match ca_file {
            None => builder.with_platform_verifier().map_err(|error| error.to_string())?.with_no_client_auth(),
            Some(path) => {
                let wrong = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
                let mut roots = RootCertStore::empty();
                for certificate in CertificateDer::pem_file_iter(path).map_err(|error| wrong(&error))? {
                    let certificate = certificate.map_err(|error| wrong(&error))?;
                    roots.add(certificate).map_err(|error| wrong(&error))?;
                }
                builder.with_root_certificates(roots).with_no_client_auth()
            }
        };
        Ok(Tls(Arc::new(config)))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Tls {
    type Stream = Encrypted<S>;
    type TlsConnect = To;
    type Error = std::convert::Infallible;

    fn make_tls_connect(&mut self, host: &str) -> Result<To, Self::Error> {
        // A Unix socket has neither a host name nor TLS.
        let name = ServerName::try_from(host).ok().map(|name| name.to_owned());
        Ok(To { config: self.0.clone(), name })
    }
}

/// A TLS handshake with one server.
pub struct To {
    config: Arc<ClientConfig>,
    name: Option<ServerName<'static>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for To {
    type Stream = Encrypted<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let connector = tokio_rustls::TlsConnector::from(self.config);
            let name = self.name.ok_or_else(|| io::Error::other("the server has no host name to verify"))?;
            Ok(Encrypted(connector.connect(name, stream).await?))
        })
    }
}

pub struct Encrypted<S>(client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Encrypted<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_made_without_a_provider_from_elsewhere() {
        Tls::new(None).unwrap();
        let missing = Tls::new(Some(Path::new("no-such-file.pem"))).err().unwrap();
        assert!(missing.starts_with("no-such-file.pem: "), "{missing}");
    }
}
