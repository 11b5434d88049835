//! Certificate authorities of a test's own, and servers that present what they issued.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use stepwell_store::tls::Authorities;
use tempfile::NamedTempFile;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

pub struct Authority {
    file: NamedTempFile,
    issuer: Issuer<'static, KeyPair>,
}

/// What a server presents: a certificate and its key, in PEM.
#[derive(Clone)]
pub struct Identity {
    pub certificate: String,
    pub key: String,
}

impl Authority {
    /// An authority that only tests trust.
    pub fn new(name: &str) -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().unwrap();
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(params.self_signed(&key).unwrap().pem().as_bytes()).unwrap();
        Authority { file, issuer: Issuer::new(params, key) }
    }

    /// The file with its certificate, as settings name it.
    pub fn path(&self) -> &std::path::Path {
        self.file.path()
    }

    pub fn authorities(&self) -> Authorities {
        Authorities::read(self.path()).unwrap()
    }

    pub fn issue(&self, host: &str) -> Identity {
        self.sign(CertificateParams::new(vec![host.to_string()]).unwrap())
    }

    /// A certificate that was valid once.
    pub fn issue_expired(&self, host: &str) -> Identity {
        let mut params = CertificateParams::new(vec![host.to_string()]).unwrap();
        (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
        self.sign(params)
    }

    fn sign(&self, params: CertificateParams) -> Identity {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Identity { certificate, key: key.serialize_pem() }
    }
}

impl Identity {
    pub fn acceptor(&self) -> TlsAcceptor {
        let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(stepwell_store::tls::provider());
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        TlsAcceptor::from(Arc::new(config.with_single_cert(vec![certificate], key).unwrap()))
    }

    /// Accepts TLS and passes what arrives on to a server that speaks none. Must be called within a runtime.
    pub async fn in_front_of(&self, server: SocketAddr) -> SocketAddr {
        let acceptor = self.acceptor();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    // A client that does not trust the certificate ends the handshake.
                    let mut client = acceptor.accept(client).await.ok()?;
                    let mut server = TcpStream::connect(server).await.ok()?;
                    tokio::io::copy_bidirectional(&mut client, &mut server).await.ok()
                });
            }
        });
        address
    }
}
