//! Refuses query parameters that a route does not declare. The OpenAPI description says which it declares, so that no
//! handler has to.

use crate::error::Problem;
use crate::serve::api;
use axum::extract::MatchedPath;
use axum::http::Method;
use axum::http::request::Parts;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use stepwell_core::nearest::nearest;
use utoipa::openapi::RefOr;
use utoipa::openapi::path::{Operation, ParameterIn};

/// The query parameters of each route, by path and method.
static DECLARED: LazyLock<BTreeMap<(String, String), Vec<String>>> = LazyLock::new(|| {
    let mut declared = BTreeMap::new();
    for (path, item) in api().paths.paths {
        let operations = [
            (Method::GET, item.get),
            (Method::PUT, item.put),
            (Method::POST, item.post),
            (Method::PATCH, item.patch),
            (Method::DELETE, item.delete),
        ];
        for (method, operation) in operations {
            let Some(operation) = operation else { continue };
            declared.insert((path.clone(), method.to_string()), names(operation));
        }
    }
    declared
});

fn names(operation: Operation) -> Vec<String> {
    let parameters = operation.parameters.unwrap_or_default().into_iter();
    let own = parameters.filter_map(|one| match one {
        RefOr::T(parameter) => Some(parameter),
        RefOr::Ref(_) => None,
    });
    own.filter(|one| one.parameter_in == ParameterIn::Query).map(|one| one.name).collect()
}

/// Refuses a request with a query parameter that its route does not declare.
pub fn check(parts: &Parts) -> Result<(), Problem> {
    let Some(query) = parts.uri.query().filter(|query| !query.is_empty()) else { return Ok(()) };
    let Some(route) = parts.extensions.get::<MatchedPath>() else { return Ok(()) };
    let method = if parts.method == Method::HEAD { Method::GET } else { parts.method.clone() };
    let Some(declared) = DECLARED.get(&(route.as_str().to_string(), method.to_string())) else { return Ok(()) };
    let mut names = form_urlencoded::parse(query.as_bytes()).map(|(name, _)| name);
    match names.find(|name| !declared.iter().any(|known| known == name)) {
        Some(name) => Err(Problem::input(&name, unknown(&name, declared))),
        None => Ok(()),
    }
}

fn unknown(name: &str, declared: &[String]) -> String {
    let known = declared.iter().map(String::as_str);
    match nearest(name, known) {
        Some(near) => format!("there is no query parameter {name:?}: did you mean {near:?}?"),
        None if declared.is_empty() => format!("there is no query parameter {name:?}: this route has none"),
        None => format!("there is no query parameter {name:?}: this route has {}", declared.join(", ")),
    }
}
