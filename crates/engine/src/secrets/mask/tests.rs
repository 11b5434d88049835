//! All forms in which a secret must be masked, and texts that must stay unchanged.

use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use proptest::prelude::*;
use serde_json::json;

fn mask(secret: &str) -> Mask {
    let mut mask = Mask::default();
    mask.hide("KEY", secret);
    mask
}

/// Percent encoding, as `encodeURIComponent` and others do it.
fn percent(text: &str, keep: &str, upper: bool) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || keep.as_bytes().contains(&byte);
    let one = |byte: u8| match (plain(byte), upper) {
        (true, _) => (byte as char).to_string(),
        (false, true) => format!("%{byte:02X}"),
        (false, false) => format!("%{byte:02x}"),
    };
    text.bytes().map(one).collect()
}

fn json_text(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_string()
}

/// JSON in ASCII only, as some languages write it.
fn json_ascii(text: &str) -> String {
    let mut units = [0; 2];
    let escaped = |c: char| match c {
        c if c.is_ascii() => json_text(&c.to_string()),
        c => c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
    };
    text.chars().map(escaped).collect()
}

fn html(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&#39;")
}

/// All forms in which a secret must be found.
fn written(secret: &str) -> Vec<String> {
    let form = percent(secret, "-._* ", true).replace(' ', "+");
    let mut all = vec![
        secret.to_string(),
        secret.to_ascii_lowercase(),
        json_text(secret),
        json_text(&json_text(secret)),
        json_ascii(secret),
        json_text(secret).replace('/', "\\/"),
        percent(secret, "-._~", true),
        percent(secret, "-._~", false),
        percent(secret, "-._~!*'()", true),
        percent(secret, ";/?:@&=+$,#-._~!*'()", true),
        percent(secret, "", true),
        percent(&percent(secret, "-._~", true), "-._~", true),
        form,
        html(secret),
        secret.bytes().map(|byte| format!("{byte:02x}")).collect(),
        secret.bytes().map(|byte| format!("{byte:02X}")).collect(),
    ];
    for before in ["", "a", "ab", "user:", "{\"key\":\""] {
        for after in ["", "z", "zy", "\"}"] {
            let around = format!("{before}{secret}{after}");
            all.extend([
                STANDARD.encode(&around),
                STANDARD_NO_PAD.encode(&around),
                URL_SAFE.encode(&around),
                URL_SAFE_NO_PAD.encode(&around),
                percent(&STANDARD.encode(&around), "-._~", true),
                json_text(&STANDARD.encode(&around)).replace('/', "\\/"),
            ]);
        }
    }
    all
}

#[test]
fn a_secret_does_not_come_back_in_body_headers_keys_or_message() {
    let mut mask = mask("s3cr/et-one");
    mask.hide("PIN", "12");
    let reply = Reply {
        body: Arc::new(json!({"said": ["you sent s3cr/et-one", 12], "s3cr/et-one": true})),
        headers: Some(Arc::new(json!({"x-echo": "s3cr%2Fet-one"}))),
        ..Reply::default()
    };
    let failure = Failure::new("http_404", "https://api/s3cr%2Fet-one: not found");
    let Outcome::Failure { failure, reply: Some(reply) } =
        mask.outcome(Outcome::Failure { failure, reply: Some(reply) })
    else {
        panic!("it stays a failure");
    };
    assert_eq!(*reply.body, json!({"said": ["you sent {{secrets.KEY}}", 12], "{{secrets.KEY}}": true}));
    assert_eq!(*reply.headers.unwrap(), json!({"x-echo": "{{secrets.KEY}}"}));
    assert_eq!(&*failure.message, "https://api/{{secrets.KEY}}: not found");
}

#[test]
fn a_secret_is_found_in_every_form() {
    for secret in [
        "hunter22",
        "s3cr/et+key==",
        "a \"quoted\\ one\"",
        "päss wörd😀",
        "<a&b>'c'\"d",
        "%41%42%43%44",
        "line\none\ttwo",
        "\\\\\\\\\\\\\\\\",
    ] {
        for text in written(secret) {
            let around = format!("before {text} after");
            let masked = mask(secret).text(&around, Ending::Whole).unwrap_or_else(|| panic!("{secret:?} in {text:?}"));
            assert!(masked.contains("{{secrets.KEY}}") && masked.starts_with("before ") && masked.ends_with(" after"));
            assert!(!masked.contains(&text) || text.len() < 8, "{masked}");
        }
    }
}

#[test]
fn text_without_secrets_stays_unchanged() {
    for text in
        ["", "hunter2", "hunter 22", "hun\\ter22", "hunter2%", "%68unter2", "aHVudGVy", "\\", "&#x;", "\\u00", "%"]
    {
        assert_eq!(mask("hunter22").text(text, Ending::Whole), None, "{text}");
    }
    assert_eq!(mask("short").text("short", Ending::Whole), None);
    assert!(mask("seven77").is_empty() && !mask("eight888").is_empty());
}

#[test]
fn a_secret_that_was_truncated_is_masked() {
    let mask = mask("sk-0123456789abcdef");
    assert_eq!(mask.shown("key sk-012345"), "key {{secrets.KEY}}");
    assert_eq!(mask.shown("key sk-012345…"), "key {{secrets.KEY}}…");
    assert_eq!(mask.shown("key sk-012345... and more"), "key {{secrets.KEY}}... and more");
    assert_eq!(mask.shown("key sk-012345 and more"), "key sk-012345 and more");
    assert_eq!(mask.shown("key sk-01"), "key sk-01");
    let cut = |truncated| {
        let reply = Reply { body: Arc::new(json!("key sk-012345")), truncated, ..Reply::default() };
        let Outcome::Success(reply) = mask.outcome(Outcome::Success(reply)) else { panic!("it stays a success") };
        Value::clone(&reply.body)
    };
    assert_eq!(cut(true), json!("key {{secrets.KEY}}"));
    assert_eq!(cut(false), json!("key sk-012345"));
}

#[test]
fn a_secret_of_digits_is_masked_in_numbers() {
    let mut value = json!({"pin": 1234567890, "price": 5});
    mask("1234567890").value(&mut value);
    assert_eq!(value, json!({"pin": "{{secrets.KEY}}", "price": 5}));
}

#[test]
fn the_longer_of_two_overlapping_secrets_is_named() {
    let mut mask = mask("abcdefgh");
    mask.hide("LONG", "abcdefghijkl");
    assert_eq!(mask.shown("abcdefghijkl abcdefghi."), "{{secrets.LONG}} {{secrets.KEY}}i.");
}

#[test]
fn a_long_text_of_near_misses_stays_unchanged() {
    let mask = mask("----------------------------BEGIN");
    assert_eq!(mask.text(&"-".repeat(256 * 1024), Ending::Whole), None);
}

proptest! {
    #[test]
    fn every_form_of_a_random_secret_is_masked_in_any_context(
        secret in "\\PC{8,40}",
        before in "[ -~]{0,20}",
        after in "[ -~]{0,20}",
        which in any::<prop::sample::Index>(),
    ) {
        let secret = secret.trim();
        prop_assume!(secret.chars().count() >= SHORTEST);
        let all = written(secret);
        let text = which.get(&all);
        let around = format!("{before}{text}{after}");
        let masked = mask(secret).text(&around, Ending::Whole);
        prop_assert!(masked.as_deref().is_some_and(|masked| masked.contains("{{secrets.KEY}}")), "{text:?} {masked:?}");
        prop_assert!(mask(secret).text(&masked.unwrap(), Ending::Whole).is_none());
    }

    #[test]
    fn many_secrets_are_found_as_each_would_be_alone(
        secrets in prop::collection::vec("[aAb.+/ &%]{8,10}|\\PC{8,12}|[ab]{8}", 1..6),
        parts in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0_usize..60), 1..6),
        noise in prop::collection::vec("[aAb.+/%&;\\\\ …-]{0,6}", 6),
        cut in any::<bool>(),
    ) {
        let secrets = secrets.iter().map(|secret| secret.trim().to_string());
        let secrets: Vec<String> = secrets.filter(|secret| secret.chars().count() >= SHORTEST).collect();
        prop_assume!(!secrets.is_empty());
        // Forms of the secrets, some only in part, with text in between.
        let part = |((secret, form, length), noise): (&(prop::sample::Index, prop::sample::Index, usize), &String)| {
            let all = written(secret.get(&secrets).as_str());
            let chars = form.get(&all).chars();
            let part: String = if *length > 40 { chars.collect() } else { chars.take(*length).collect() };
            format!("{part}{noise}")
        };
        let text: String = parts.iter().zip(&noise).map(part).collect();
        let ending = if cut { Ending::Cut } else { Ending::Whole };
        prop_assert_eq!(of_many(&secrets).text(&text, ending), one_by_one(&secrets, &text, ending), "{}", text);
    }

    #[test]
    fn masking_any_text_does_not_panic(secret in "\\PC{8,20}", text in "[\\\\%&;#xu0-9a-f\"\\PC]{0,200}") {
        let _ = mask(&secret).shown(&text);
    }
}

#[test]
fn base64_is_found_across_line_breaks() {
    let secret = "a key that is long enough for base64 in several lines, as in mails and certificates";
    let encoded = STANDARD.encode(format!("before {secret} after"));
    for (width, end) in [(76, "\r\n"), (64, "\n"), (60, "\\n"), (76, "\\\\r\\\\n")] {
        let lines: Vec<&str> =
            encoded.as_bytes().chunks(width).map(|line| std::str::from_utf8(line).unwrap()).collect();
        let shown = mask(secret).shown(&lines.join(end)).into_owned();
        assert!(shown.contains("{{secrets.KEY}}") && shown.len() < 60, "{shown}");
    }
}

/// Masks with each secret alone at each place of the text, and takes the longest match.
fn one_by_one(secrets: &[String], text: &str, ending: Ending) -> Option<String> {
    let each: Vec<[Patterns; 3]> = secrets.iter().map(|secret| Patterns::all(std::slice::from_ref(secret))).collect();
    let (mut at, mut masked) = (0, String::new());
    while at < text.len() {
        let end = |patterns: &Patterns| Some(patterns.end(text.as_bytes(), at, ending, &mut 0)?.0);
        let ends = each.iter().enumerate().flat_map(|(n, forms)| forms.iter().filter_map(end).map(move |end| (end, n)));
        let next = (at + 1..=text.len()).find(|next| text.is_char_boundary(*next)).unwrap_or(text.len());
        match ends.max().filter(|(end, _)| text.is_char_boundary(*end)) {
            Some((end, n)) => {
                masked.push_str(&format!("{{{{secrets.{n}}}}}"));
                at = end;
            }
            None => {
                masked.push_str(&text[at..next]);
                at = next;
            }
        }
    }
    (masked != text).then_some(masked)
}

/// A mask of several secrets.
fn of_many(secrets: &[String]) -> Mask {
    let mut mask = Mask::default();
    for (n, secret) in secrets.iter().enumerate() {
        mask.hide(&n.to_string(), secret);
    }
    mask
}

#[test]
fn the_work_does_not_grow_with_the_number_of_secrets() {
    let secrets: Vec<String> = (0..1_000).map(|n| format!("sk_live_{n:04}_abcdefgh")).collect();
    // Starts of secrets, in all forms, and near misses.
    let text = "sk_live_0007_abcdefgX sk%5Flive_… 736b5f6c697665 c2tfbGl2ZV8wMDA3 \\u0073k_live_... ".repeat(200);
    let work = |many: usize| {
        let mut work = 0;
        for ending in [Ending::Whole, Ending::Cut] {
            of_many(&secrets[..many]).counted(&text, ending, &mut work);
        }
        work
    };
    let (few, many) = (work(8), work(1_000));
    assert!(many < 2 * few, "{few} steps for 8 secrets, {many} for 1,000");
    assert!(many < 30 * text.len() as u64, "{many} steps for {} bytes", text.len());
}
