//! TLS connections to the database. The server's certificate and its host name are always verified, so `sslmode=require`
//! is what other clients call `verify-full`.

use crate::tls::{Authorities, provider};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier};
use rustls_platform_verifier::Verifier;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::client;

/// Used if the URL's `sslmode` requires TLS or the server offers it.
#[derive(Clone)]
pub struct Tls {
    authorities: Authorities,
    and_system: bool,
}

impl Tls {
    /// Trusts the system's certificate authorities and these.
    pub fn with(extra: &Authorities) -> Tls {
        Tls { authorities: extra.clone(), and_system: true }
    }

    /// Trusts only these certificate authorities.
    pub fn only(authorities: &Authorities) -> Tls {
        Tls { authorities: authorities.clone(), and_system: false }
    }

    /// Reads the system's authorities, which takes milliseconds, so this is for when a handshake begins.
    fn config(&self) -> Result<ClientConfig, String> {
        if self.and_system { with_system(&self.authorities) } else { only(&self.authorities) }
    }
}

fn with_system(extra: &Authorities) -> Result<ClientConfig, String> {
    let verifier = Verifier::new_with_extra_roots(extra.certificates().iter().cloned(), provider());
    let verifier = Arc::new(verifier.map_err(|error| error.to_string())?);
    let builder = builder()?.dangerous().with_custom_certificate_verifier(verifier);
    Ok(builder.with_no_client_auth())
}

fn only(authorities: &Authorities) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    for certificate in authorities.certificates() {
        roots.add(certificate.clone()).map_err(|error| error.to_string())?;
    }
    Ok(builder()?.with_root_certificates(roots).with_no_client_auth())
}

fn builder() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, String> {
    let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
    builder.map_err(|error| error.to_string())
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Tls {
    type Stream = Encrypted<S>;
    type TlsConnect = To;
    type Error = std::convert::Infallible;

    fn make_tls_connect(&mut self, host: &str) -> Result<To, Self::Error> {
        // A Unix socket has neither a host name nor TLS.
        let name = ServerName::try_from(host).ok().map(|name| name.to_owned());
        Ok(To { tls: self.clone(), name })
    }
}

/// A TLS handshake with one server.
pub struct To {
    tls: Tls,
    name: Option<ServerName<'static>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for To {
    type Stream = Encrypted<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let config = self.tls.config().map_err(io::Error::other)?;
            let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
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
        Tls::with(&Authorities::default()).config().unwrap();
        Tls::only(&Authorities::default()).config().unwrap();
    }
}
