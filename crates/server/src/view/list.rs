//! Pages of lists.

use crate::error::Problem;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// One page. `next` is given back as `cursor` to get the one after it; the last page has none.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Page<T> {
    pub data: Vec<T>,
    #[serde(default)]
    pub next: Option<String>,
}

impl<T> From<Vec<T>> for Page<T> {
    fn from(data: Vec<T>) -> Page<T> {
        Page { data, next: None }
    }
}

/// How many a page has: what was asked for, or else the usual.
pub fn page_size(asked: Option<u32>, usual: u32) -> Result<u32, Problem> {
    match asked {
        Some(0) | Some(1_001..) => Err(Problem::input("limit", "a page has 1 to 1000")),
        asked => Ok(asked.unwrap_or(usual)),
    }
}

/// Which page.
#[derive(Clone, PartialEq, Default, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct Paging {
    /// How many at the most; 50 if it is not said.
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<u32>,
    /// `next` of the page before.
    pub cursor: Option<String>,
}

impl Paging {
    pub fn limit(&self) -> Result<u32, Problem> {
        page_size(self.limit, 50)
    }
}
