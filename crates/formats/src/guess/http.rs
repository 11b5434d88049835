//! A request under other names.

use super::step::flatten;
use super::words::Names;
use super::{Object, take, take_object, take_text};
use serde_json::Value as Json;

/// Objects that hold the fields of a step.
pub const SETTINGS: [&str; 10] = [
    "config",
    "inputParameters",
    "with",
    "params",
    "parameters",
    "inputs",
    "settings",
    "options",
    "properties",
    "Parameters",
];

/// `native`: the step is an HTTP step here too, whose method is POST unless it says so.
pub fn convert(fields: &mut Object, out: &mut Object, names: &Names, native: bool) {
    if fields.contains_key("url") && fields.get("params").is_some_and(Json::is_object) {
        let params = fields.shift_remove("params").unwrap_or_default();
        fields.insert("query".into(), params);
    }
    flatten(fields, &SETTINGS);
    flatten(fields, &["input", "arguments", "args", "request", "http", "http_request"]);
    let endpoint = match fields.shift_remove("endpoint") {
        Some(Json::Object(mut inner)) => take(&mut inner, &["uri", "url"]),
        other => other,
    };
    let url = take(fields, &["url", "uri", "api_url", "ApiEndpoint", "address", "href", "path"]).or(endpoint);
    let mut url = url.map_or(Json::Null, |url| names.value(&url));
    let extra = take_object(fields, &["query", "query_params", "queryParams", "qs", "QueryParameters"]);
    if let (Json::String(text), Some(extra)) = (&mut url, extra) {
        for (name, value) in extra {
            let value = value.as_str().map_or_else(|| value.to_string(), |text| names.text(text));
            text.push_str(&format!("{}{name}={value}", if text.contains('?') { '&' } else { '?' }));
        }
    }
    if !url.is_null() {
        out.insert("url".into(), url);
    }
    let body = take(fields, &["body", "json", "payload", "data", "content", "RequestBody", "jsonBody", "json_body"]);
    let method = take_text(fields, &["method", "verb", "httpMethod", "http_method", "Method", "requestMethod"]);
    match (method, &body) {
        (Some(method), _) => drop(out.insert("method".into(), method.into())),
        (None, None) if !native && !fields.contains_key("form") => drop(out.insert("method".into(), "GET".into())),
        _ => {}
    }
    if let Some(headers) = headers(fields, names) {
        out.insert("headers".into(), headers);
    }
    if let Some(body) = body {
        out.insert("body".into(), names.value(&body));
    } else if let Some(form) = take(fields, &["form"]) {
        out.insert("form".into(), names.value(&form));
    }
}

fn headers(fields: &mut Object, names: &Names) -> Option<Json> {
    let mut found = match take(fields, &["headers", "header", "Headers"]) {
        Some(Json::Object(headers)) => headers,
        Some(Json::Array(items)) => {
            let entry = |item: &Json| {
                Some((item.get("name").or(item.get("key"))?.as_str()?.to_owned(), item.get("value")?.clone()))
            };
            items.iter().filter_map(entry).collect()
        }
        _ => Object::new(),
    };
    if let Some(auth) = take(fields, &["auth", "authentication", "authorization", "bearer_token"]) {
        let token = match &auth {
            Json::String(token) => Some(token.clone()),
            other => ["token", "bearer", "access_token"]
                .iter()
                .find_map(|name| other.get(*name)?.as_str().map(str::to_owned)),
        };
        if let Some(token) = token {
            let token = if token.starts_with("Bearer ") { token } else { format!("Bearer {token}") };
            found.insert("authorization".into(), token.into());
        }
    }
    (!found.is_empty()).then(|| names.value(&Json::Object(found)))
}
