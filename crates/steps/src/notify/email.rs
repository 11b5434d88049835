//! Email: opens one connection per message to the configured mail server.

use super::short;
use lettre::address::Address;
use lettre::message::Mailbox;
use lettre::message::header::{ContentType, MessageId};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::{AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};
use std::time::Duration;
use stepwell_engine::notify::{Parcel, Undelivered};
use stepwell_store::tls::Authorities;

const TIMEOUT: Duration = Duration::from_secs(10);

/// The mail server. Has no `Debug`: it holds a password.
#[derive(Clone)]
pub struct Smtp {
    pub host: String,
    pub port: u16,
    pub encryption: Encryption,
    pub username: Option<String>,
    pub password: Option<String>,
    /// `Stepwell <stepwell@example.com>`, or only the address.
    pub from: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encryption {
    /// TLS from the first byte.
    Tls,
    /// `STARTTLS`; a server without it is not used.
    StartTls,
    None,
}

pub struct Mail {
    from: Mailbox,
    transport: AsyncSmtpTransport<Tokio1Executor>,
}

/// Checks an email address.
pub fn check(address: &str) -> Result<(), String> {
    let parsed = address.parse::<Address>();
    parsed.map(|_| ()).map_err(|why| format!("this is not an email address: {why}"))
}

impl Mail {
    pub fn new(smtp: &Smtp, authorities: &Authorities) -> Result<Mail, String> {
        let from: Mailbox = smtp.from.parse().map_err(|why| format!("`smtp.from` is not an address: {why}"))?;
        let verified = || parameters(&smtp.host, authorities);
        let tls = match smtp.encryption {
            Encryption::Tls => Tls::Wrapper(verified()?),
            // Fails if the server does not offer it, before the password or the message is sent.
            Encryption::StartTls => Tls::Required(verified()?),
            Encryption::None => Tls::None,
        };
        let builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&smtp.host).tls(tls);
        let mut builder = builder.port(smtp.port).timeout(Some(TIMEOUT));
        if let (Some(user), Some(password)) = (&smtp.username, &smtp.password) {
            builder = builder.credentials(Credentials::new(user.clone(), password.clone()));
        }
        Ok(Mail { from, transport: builder.build() })
    }

    pub async fn send(&self, parcel: &Parcel, to: &str) -> Result<(), Undelivered> {
        let to: Address = to.parse().map_err(|_| Undelivered::for_good("the channel's address is invalid"))?;
        let link = parcel.link.as_ref().map(|link| format!("\n\n{link}")).unwrap_or_default();
        let mail = Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, to))
            .subject(parcel.message.title())
            // The same for every attempt, so that mail programs can merge duplicates.
            .header(MessageId::from(format!("<{}@{}>", parcel.id, self.from.email.domain())))
            .header(ContentType::TEXT_PLAIN)
            .body(format!("{}{link}\n", parcel.message.lines()));
        let mail = mail.map_err(|why| Undelivered::for_good(short(&format!("the email cannot be built: {why}"))))?;
        match self.transport.send(mail).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_permanent() => Err(Undelivered::for_good(short(&describe(&error)))),
            Err(error) => Err(Undelivered::for_now(short(&describe(&error)))),
        }
    }
}

/// Verifies the server's certificate and its host name.
fn parameters(host: &str, authorities: &Authorities) -> Result<TlsParameters, String> {
    let cannot = |why| format!("the mail server cannot be used: {why}");
    let mut builder = TlsParameters::builder(host.to_owned());
    for certificate in authorities.certificates() {
        builder = builder.add_root_certificate(Certificate::from_der(certificate.to_vec()).map_err(cannot)?);
    }
    builder.build_rustls().map_err(cannot)
}

/// Describes an error with its causes.
fn describe(error: &dyn std::error::Error) -> String {
    let mut text = format!("the mail server: {error}");
    let mut next = error.source();
    while let Some(error) = next {
        let reason = error.to_string();
        if !text.contains(&reason) {
            text.push_str(": ");
            text.push_str(&reason);
        }
        next = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transport_is_made_for_every_encryption() {
        for encryption in [Encryption::Tls, Encryption::StartTls, Encryption::None] {
            let (host, from) = ("mail.example.com".to_string(), "a@example.com".to_string());
            let smtp = Smtp { host, port: 25, from, username: None, password: None, encryption };
            assert_eq!(Mail::new(&smtp, &Authorities::default()).err(), None);
        }
    }
}
