//! What all handlers share.

use crate::config::Config;
use crate::live::Hub;
use crate::rates::Rates;
use std::sync::Arc;
use stepwell_engine::Engine;

/// Clones are the same one.
#[derive(Clone)]
pub struct App {
    pub engine: Engine,
    pub config: Arc<Config>,
    /// What callback and sign-in URLs begin with.
    pub public_url: Arc<str>,
    pub hub: Arc<Hub>,
    pub rates: Arc<Rates>,
}
