//! State shared by all handlers.

use crate::config::Config;
use crate::live::Hub;
use crate::rates::Rates;
use std::sync::Arc;
use stepwell_engine::Engine;

/// Clones share the same state.
#[derive(Clone)]
pub struct App {
    pub engine: Engine,
    pub config: Arc<Config>,
    /// Prefix of callback and sign-in URLs.
    pub public_url: Arc<str>,
    pub hub: Arc<Hub>,
    pub rates: Arc<Rates>,
}
