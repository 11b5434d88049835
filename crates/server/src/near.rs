//! Routes of the API near a path that has none, for people who mistype one.

use stepwell_core::nearest::nearest;
use utoipa::openapi::OpenApi;

const BASE: &str = "/api/v1";
/// Routes that are named at most.
const MOST: usize = 3;
/// What a segment costs: one that is misspelt, and one too many or too few.
const MISSPELT: u32 = 1;
const EXTRA: u32 = 2;
/// A route with a higher cost is not near.
const FAR: u32 = 2;

/// The paths of the API.
pub struct Routes(Vec<String>);

impl Routes {
    pub fn of(api: &OpenApi) -> Routes {
        Routes(api.paths.paths.keys().filter(|path| path.starts_with(BASE)).cloned().collect())
    }

    /// Says that there is no such path, and which are near it.
    pub fn missing(&self, path: &str) -> String {
        let near = self.near(path);
        match near.as_slice() {
            [] => "there is nothing at this path".into(),
            [one] => format!("there is nothing at this path; did you mean {one}?"),
            several => format!("there is nothing at this path; near it are {}", several.join(", ")),
        }
    }

    fn near(&self, path: &str) -> Vec<&str> {
        let asked = segments(path);
        let costs = self.0.iter().filter_map(|route| Some((cost(&asked, &segments(route))?, route.as_str())));
        let mut found: Vec<(u32, &str)> = costs.collect();
        found.sort_unstable();
        let least = found.first().map(|(cost, _)| *cost);
        found.retain(|(cost, _)| Some(*cost) == least);
        found.into_iter().take(MOST).map(|(_, route)| route).collect()
    }
}

/// The segments without the base, which may be missing or incomplete.
fn segments(path: &str) -> Vec<&str> {
    let all = path.split('/').filter(|segment| !segment.is_empty());
    all.skip_while(|segment| matches!(*segment, "api" | "v1" | "v2")).collect()
}

/// How far a path is from a route. `None` if they have not even a first segment in common.
fn cost(asked: &[&str], route: &[&str]) -> Option<u32> {
    let mut cost = EXTRA * asked.len().abs_diff(route.len()) as u32;
    for (n, (asked, route)) in asked.iter().zip(route).enumerate() {
        cost += match () {
            () if route.starts_with('{') || asked == route => 0,
            () if nearest(asked, [*route]).is_some() => MISSPELT,
            () if n == 0 => return None,
            () => FAR + 1,
        };
    }
    (cost <= FAR && !asked.is_empty()).then_some(cost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_near_a_mistyped_path_are_found() {
        let routes = [
            "/api/v1/runs",
            "/api/v1/runs/{run}",
            "/api/v1/runs/{run}/cancel",
            "/api/v1/workflows",
            "/api/v1/workflows/{id}",
            "/api/v1/workflows/{id}/trigger",
        ];
        let routes = Routes(routes.map(String::from).to_vec());
        let check = |path: &str, expected: &[&str]| assert_eq!(routes.near(path), expected, "{path}");
        check("/api/v1/workflow", &["/api/v1/workflows"]);
        check("/v1/workflows", &["/api/v1/workflows"]);
        check("/api/v2/runs/run_1", &["/api/v1/runs/{run}"]);
        check("/api/v1/runs/run_1/cancle", &["/api/v1/runs/{run}/cancel"]);
        check("/api/v1/workflows/a/triger", &["/api/v1/workflows/{id}/trigger"]);
        check("/api/v1/nowhere", &[]);
        check("/api/v1", &[]);
        check("/", &[]);
    }
}
