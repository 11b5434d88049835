//! Random requests to every route, with keys of three roles: none is answered with a server error, and none that is
//! forbidden to a role succeeds because its parameters or its body are odd.
//!
//! `STEPWELL_SEED` chooses the requests; the test prints it.

use crate::harness::{Answer, Api};
use crate::tenants::{ENDLESS, PUBLIC, Route, Scene, body, everything, filled, routes, scene};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const REQUESTS: usize = 1_500;

/// What each role may not do, by the methods and paths it is meant to use.
const ROLES: [(&str, &[&str]); 3] = [
    ("viewer", &["workflow.read"]),
    ("runner", &["workflow.run", "workflow.read", "tool:*"]),
    ("approver", &["workflow.read", "workflow.approve"]),
];

/// A generator of random numbers that a seed repeats (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, most: usize) -> usize {
        (self.next() % most as u64) as usize
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// Texts that parsers trip over.
const ODD: [&str; 12] = [
    "",
    "0",
    "-1",
    "99999999999999999999",
    "run_",
    "wf_00000000000000000000000000000000",
    "../../etc/passwd",
    "%00",
    "a%2Fb",
    "\u{202e}evil",
    "{{secrets.SECRET_KEY}}",
    "'; DROP TABLE workflow_runs; --",
];

fn odd_value(random: &mut Random) -> Value {
    match random.below(8) {
        0 => Value::Null,
        1 => json!(random.next() as i64),
        2 => json!(-1.5e300),
        3 => json!([[], {}, null]),
        4 => json!({"a": {"b": []}, "filter": {"status": "x"}}),
        5 => json!(true),
        _ => json!(random.pick(&ODD)),
    }
}

/// Replaces, adds or removes a field, or the whole body.
fn mutated(random: &mut Random, mut body: Value) -> Value {
    let odd = odd_value(random);
    let Some(fields) = body.as_object_mut().filter(|_| random.below(6) > 0) else { return odd };
    let names: Vec<String> = fields.keys().cloned().collect();
    match random.below(3) {
        0 if !names.is_empty() => drop(fields.remove(random.pick(&names).as_str())),
        1 if !names.is_empty() => drop(fields.insert(random.pick(&names).clone(), odd)),
        _ => drop(fields.insert((*random.pick(&["name", "user", "grants", "x", "agent", "limit"])).into(), odd)),
    }
    body
}

/// The route with some of its parameters replaced, and perhaps a query.
fn path(random: &mut Random, route: &Route, good: &str) -> String {
    let given = route.path.split('/').zip(good.split('/'));
    let parts: Vec<String> = given
        .map(|(name, value)| match name.starts_with('{') && random.below(3) == 0 {
            true => odd_part(random),
            false => value.to_string(),
        })
        .collect();
    let query = match random.below(4) {
        0 => format!("?limit={}&cursor={}", odd_part(random), odd_part(random)),
        1 => format!("?{}={}", random.pick(&["status", "since", "wait", "q"]), odd_part(random)),
        _ => String::new(),
    };
    format!("{}{query}", parts.join("/"))
}

/// An odd text, encoded as a part of a URL.
fn odd_part(random: &mut Random) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric().then(|| char::from(byte).to_string());
    random.pick(&ODD).bytes().map(|byte| plain(byte).unwrap_or_else(|| format!("%{byte:02X}"))).collect()
}

fn send(api: &Api, route: &Route, path: &str, body: &Value) -> Answer {
    match route.method.as_str() {
        "GET" | "DELETE" => api.send(&route.method, path, &[], None),
        _ => api.call(&route.method, path, body),
    }
}

#[test]
fn random_requests_of_every_role_are_refused_and_never_break_the_server() {
    let seed: u64 = std::env::var("STEPWELL_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_261_118);
    println!("STEPWELL_SEED={seed}");
    let Scene { server, things, .. } = &scene();
    let mut all = routes(&server.api);
    all.retain(|route| !ENDLESS.contains(&&*route.name) && !PUBLIC.contains(&&*route.name));
    all.retain(|route| !route.path.contains("/stream") && !route.path.contains("/sign-out"));
    let callers: Vec<(&str, Api)> =
        ROLES.iter().map(|(role, grants)| (*role, server.api.new_user(&format!("the-{role}"), grants))).collect();
    // A well-formed request says what a role may not do at all.
    let mut forbidden: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let before = everything(&server.api, things);
    for (role, caller) in &callers {
        for route in all.iter().filter(|route| route.method != "GET") {
            let refused = send(caller, route, &filled(route, things), &body(route)).status == 403;
            if refused {
                forbidden.entry(role).or_default().insert(&route.name);
            }
        }
    }
    assert!(forbidden["viewer"].len() > 30, "{forbidden:#?}");
    let mut random = Random(seed);
    let mut wrong = Vec::new();
    let mut answers: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for _ in 0..REQUESTS {
        let (role, caller) = random.pick(&callers);
        let route = random.pick(&all);
        let path = path(&mut random, route, &filled(route, things));
        let body = mutated(&mut random, body(route));
        let answer = send(caller, route, &path, &body);
        let succeeded = (200..300).contains(&answer.status);
        let kind = match answer.status {
            403 => "forbidden",
            _ if succeeded => "done",
            _ => "invalid",
        };
        *answers.entry((role, kind)).or_default() += 1;
        if answer.status >= 500 || (succeeded && forbidden[role].contains(&*route.name)) {
            wrong.push(format!("{role}: {} {path} {body}: {} {}", route.method, answer.status, answer.text()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // A role whose requests all end alike would prove nothing.
    for (role, _) in ROLES {
        assert!(!forbidden[role].is_empty(), "{role} may do everything");
        for kind in ["done", "forbidden", "invalid"] {
            assert!(answers.contains_key(&(role, kind)), "no request of {role} was {kind}: {answers:?}");
        }
    }
    // What only administrators may change is as it was: users, roles, policies, secrets, connections, queries.
    let after = everything(&server.api, things);
    for list in [6, 7, 8, 10, 11, 12] {
        assert_eq!(after["lists"][list], before["lists"][list]);
    }
}
