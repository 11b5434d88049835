//! A blocking client of the HTTP API.

use crate::{PATIENCE, eventually};
use reqwest::blocking::Client;
use reqwest::header::HeaderMap;
use reqwest::redirect::Policy;
use serde_json::{Value, json};
use std::sync::OnceLock;

/// Whether an operation may answer with a status and a code, given its method and path. A suite that knows the description
/// of the API sets it, and every refusal that its tests expect is then compared with the description.
pub static DESCRIBED: OnceLock<Described> = OnceLock::new();

/// Whether the description of the API lists a problem: method, path, status, code.
pub type Described = fn(&str, &str, u16, &str) -> bool;

/// A client of the API.
#[derive(Clone)]
pub struct Api {
    pub url: String,
    pub key: Option<String>,
    client: Client,
}

impl Api {
    pub fn new(url: &str, key: Option<&str>) -> Api {
        stepwell_store::tls::install();
        let client = Client::builder().timeout(PATIENCE).redirect(Policy::none()).no_proxy().build().unwrap();
        Api { url: url.into(), key: key.map(str::to_string), client }
    }

    /// The same client with another key.
    pub fn but(&self, key: &str) -> Api {
        Api { key: Some(key.into()), ..self.clone() }
    }

    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<Vec<u8>>) -> Answer {
        self.try_send(method, path, headers, body).unwrap_or_else(|error| panic!("{method} {path}: {error:?}"))
    }

    /// Returns an error if there was no answer.
    pub fn try_send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<Vec<u8>>,
    ) -> reqwest::Result<Answer> {
        let url = format!("{}{path}", self.url);
        let mut request = self.client.request(method.parse().unwrap(), url);
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request.body(body);
        }
        let response = request.send()?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Ok(Answer { what: format!("{method} {path}"), status, headers, bytes: response.bytes()?.to_vec() })
    }

    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], None)
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.call("POST", path, body)
    }

    pub fn call(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.send(method, path, &[("content-type", "application/json")], Some(body.to_string().into()))
    }

    pub fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, &[], None)
    }

    /// The `data` of a resource, by its path below the API's root.
    #[track_caller]
    pub fn data(&self, path: &str) -> Value {
        self.get(&format!("/api/v1{path}")).is(200).data()
    }

    /// Posts to a path below the API's root, which must succeed, and returns the `data` of the answer.
    #[track_caller]
    pub fn create(&self, path: &str, body: &Value) -> Value {
        let answer = self.post(&format!("/api/v1{path}"), body);
        assert!((200..300).contains(&answer.status), "{path}: {} {}", answer.status, answer.text());
        answer.data()
    }

    /// Creates a workflow and returns its id.
    #[track_caller]
    pub fn define(&self, definition: &Value) -> String {
        self.post("/api/v1/workflows", definition).is(201).data()["id"].as_str().unwrap().to_string()
    }

    /// Starts a run and returns its id.
    #[track_caller]
    pub fn trigger(&self, workflow: &str, input: &Value) -> String {
        let answer = self.post(&format!("/api/v1/workflows/{workflow}/trigger"), input).is(201);
        answer.data()["run_id"].as_str().unwrap().to_string()
    }

    /// The current state of a run.
    #[track_caller]
    pub fn run(&self, run: &str) -> Value {
        self.get(&format!("/api/v1/runs/{run}")).is(200).data()
    }

    /// Waits for the end of a run.
    #[track_caller]
    pub fn end(&self, run: &str) -> Value {
        eventually("the end of a run", || Some(self.run(run)).filter(|run| !run["finished_at"].is_null()))
    }

    /// Waits until a step of the run has this status.
    #[track_caller]
    pub fn step(&self, run: &str, step: &str, status: &str) -> Value {
        let what = format!("{step} {status}");
        eventually(&what, || Some(self.run(run)).filter(|run| run["tasks"][step]["status"] == status))
    }

    /// Starts a run and waits for its end.
    #[track_caller]
    pub fn finished(&self, workflow: &str, input: &Value) -> Value {
        self.post(&format!("/api/v1/workflows/{workflow}/trigger?wait=60s"), input).is(200).data()
    }

    /// Ends the wait of a step.
    #[track_caller]
    pub fn ready(&self, run: &str, step: &str) -> Value {
        let id = self.run(run)["tasks"][step]["id"].as_str().unwrap().to_string();
        self.send("POST", &format!("/api/v1/steps/{id}/ready"), &[], None).is(200).data()
    }

    /// Creates a key of the caller's organisation.
    #[track_caller]
    pub fn new_key(&self, request: Value) -> String {
        self.post("/api/v1/keys", &request).is(201).data()["key"].as_str().unwrap().to_string()
    }

    /// Creates a user with these grants and returns a client with a key of that user.
    #[track_caller]
    pub fn new_user(&self, name: &str, grants: &[&str]) -> Api {
        self.post("/api/v1/users", &json!({"name": name, "grants": grants})).is(201);
        self.but(&self.new_key(json!({"user": name, "name": "test"})))
    }

    /// Creates an organisation and returns a client for its first user.
    #[track_caller]
    pub fn new_organisation(&self, name: &str) -> Api {
        let made = self.post("/api/v1/organisations", &json!({"name": name})).is(201).data();
        self.but(made["admin_key"].as_str().unwrap())
    }
}

/// A response.
pub struct Answer {
    what: String,
    pub status: u16,
    pub headers: HeaderMap,
    pub bytes: Vec<u8>,
}

impl Answer {
    #[track_caller]
    pub fn is(self, status: u16) -> Answer {
        assert_eq!(self.status, status, "{}: {}", self.what, self.text());
        self
    }

    /// Checks that the response is a problem with this code and returns it.
    #[track_caller]
    pub fn refused(self, status: u16, code: &str) -> Value {
        let answer = self.is(status);
        assert_eq!(answer.header("content-type"), "application/problem+json", "{}", answer.text());
        let problem = answer.json();
        assert_eq!(problem["code"], code, "{problem:#}");
        assert_eq!(problem["status"], status, "{problem:#}");
        let (method, path) = answer.what.split_once(' ').unwrap_or_default();
        let is_described = DESCRIBED.get().is_none_or(|described| described(method, path, status, code));
        assert!(is_described, "{}: the description of the API does not list {status} {code}", answer.what);
        problem
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|error| panic!("{}: {error}: {}", self.what, self.text()))
    }

    #[track_caller]
    pub fn data(&self) -> Value {
        self.json()["data"].take()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }
}
