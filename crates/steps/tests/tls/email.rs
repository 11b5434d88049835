//! Email: neither the password nor the message leaves without TLS to the right server.

use crate::postbox::{Offer, Postbox};
use crate::{HOST, invalid, trusting};
use stepwell_core::time::Time;
use stepwell_engine::notify::{Message, Parcel, Settings, Undelivered};
use stepwell_steps::{Config, Encryption, Smtp, courier};
use stepwell_testing::Authority;

async fn send(authority: &Authority, postbox: &Postbox, encryption: Encryption) -> Result<(), Undelivered> {
    let smtp = Smtp {
        host: HOST.into(),
        port: postbox.address.port(),
        encryption,
        username: Some("stepwell".into()),
        password: Some("s3cret".into()),
        from: "stepwell@example.com".into(),
    };
    let courier = courier(&Config { smtp: Some(smtp), ..trusting(authority) });
    let now = Time(1_700_000_000_000);
    let to = Settings::Email { to: "ann@example.com".into() };
    let parcel = Parcel { id: "d1".into(), message: Message::test("ann", now), link: None, to, guard: None, now };
    courier.send(&parcel).await
}

#[tokio::test]
async fn email_is_sent_over_tls_that_was_verified() {
    let ours = Authority::new("our authority");
    for (offer, encryption) in [(Offer::StartTls, Encryption::StartTls), (Offer::Wrapped, Encryption::Tls)] {
        let postbox = Postbox::start(offer, &ours.issue(HOST)).await;
        send(&ours, &postbox, encryption).await.unwrap();
        let heard = postbox.heard();
        assert!(heard.encrypted.iter().any(|line| line.contains("The channel works")), "{:?}", heard.encrypted);
        assert!(heard.encrypted.iter().any(|line| line.starts_with("AUTH")), "{:?}", heard.encrypted);
        assert!(heard.clear.iter().all(|line| line.starts_with("EHLO") || line == "STARTTLS"), "{:?}", heard.clear);
    }
}

#[tokio::test]
async fn a_mail_server_with_an_invalid_certificate_gets_neither_password_nor_message() {
    let ours = Authority::new("our authority");
    for (identity, part) in invalid(&ours) {
        for (offer, encryption) in [(Offer::StartTls, Encryption::StartTls), (Offer::Wrapped, Encryption::Tls)] {
            let postbox = Postbox::start(offer, &identity).await;
            let why = send(&ours, &postbox, encryption).await.unwrap_err();
            assert!(why.again && why.why.contains(part), "{part}: {why:?}");
            let heard = postbox.heard();
            assert_eq!(heard.encrypted, Vec::<String>::new());
            assert!(heard.clear.iter().all(|line| line.starts_with("EHLO") || line == "STARTTLS"), "{:?}", heard.clear);
        }
    }
}

#[tokio::test]
async fn nothing_is_sent_in_the_clear_if_starttls_is_stripped() {
    let ours = Authority::new("our authority");
    let postbox = Postbox::start(Offer::Stripped, &ours.issue(HOST)).await;
    let why = send(&ours, &postbox, Encryption::StartTls).await.unwrap_err();
    assert!(why.why.contains("STARTTLS"), "{why:?}");
    let harmless = ["EHLO", "QUIT", "STARTTLS"];
    let clear = postbox.heard().clear;
    assert!(clear.iter().all(|line| harmless.iter().any(|word| line.starts_with(word))), "{clear:?}");
}
