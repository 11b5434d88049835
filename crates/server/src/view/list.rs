//! Pages of lists.

use crate::error::Problem;
use serde::{Deserialize, Serialize};
pub use stepwell_engine::commands::page_size;
use utoipa::{IntoParams, ToSchema};

/// One page. Pass `next` as `cursor` to get the following page; the last page has none.
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

/// Selects a page.
#[derive(Clone, PartialEq, Default, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct Paging {
    /// Maximum number of entries; 50 by default.
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<u32>,
    /// `next` of the previous page.
    pub cursor: Option<String>,
}

impl Paging {
    pub fn limit(&self) -> Result<u32, Problem> {
        Ok(page_size(self.limit, 50)?)
    }
}
