//! State shared by all handlers.

use crate::body;
use crate::config::Config;
use crate::live::Hub;
use crate::rates::Rates;
use crate::shares::Shares;
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
    pub(crate) rates: Arc<Rates>,
    /// Memory for request bodies.
    pub(crate) bodies: Arc<Shares>,
}

impl App {
    pub fn new(engine: Engine, config: Arc<Config>, public_url: &str, hub: Arc<Hub>) -> App {
        let rates = Arc::new(Rates::new(config.limits.requests_per_second, config.limits.burst()));
        let bodies = body::room(config.limits.body);
        App { engine, config, public_url: public_url.into(), hub, rates, bodies }
    }
}
