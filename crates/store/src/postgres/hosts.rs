//! The hosts of a database URL: the order in which they are tried, how long each may take, and which one is in use.
//!
//! A host may accept a connection and never answer. So each host gets a share of the time, and when the heartbeat moves
//! to another host, all connections to the previous one are closed: whatever waits there would wait in vain.

use super::session::{DbResult, Failed, Purpose, error_text};
use super::tls::{Encrypted, Tls};
use super::url::{self, WrongUrl};
use crate::PostgresOptions;
use crate::tls::Authorities;
use std::ops::Deref;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_postgres::config::{Host, TargetSessionAttrs};
use tokio_postgres::{Client, Config, Connection, Socket};

/// The timeout for connecting, which all hosts share.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The same for a heartbeat with a very short lease.
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(500);
/// After this much silence the system asks the peer whether it is there, and closes the connection after some questions
/// without an answer.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(3);
const KEEPALIVE_RETRIES: u32 = 3;
/// How long sent data may stay unacknowledged by the peer's system.
const UNACKNOWLEDGED: Duration = Duration::from_secs(15);

/// The half of a connection that does the I/O.
pub type Driver = Connection<Socket, Encrypted<Socket>>;

/// A connection, and which host of the URL it leads to.
pub struct Connected {
    pub client: Client,
    pub driver: Driver,
    host: usize,
    current: watch::Receiver<Option<usize>>,
}

impl Connected {
    /// Ends when the heartbeat moves from this host to another one.
    pub fn left(&self) -> impl Future<Output = ()> + Send + 'static {
        let (mut current, host) = (self.current.clone(), self.host);
        async move {
            loop {
                if current.changed().await.is_err() {
                    // The store is being closed, which ends its connections otherwise.
                    return std::future::pending().await;
                }
                if current.borrow_and_update().is_some_and(|used| used != host) {
                    return;
                }
            }
        }
    }
}

/// A database with its options.
pub struct Database {
    options: PostgresOptions,
    /// The host that the heartbeat uses.
    current: watch::Sender<Option<usize>>,
}

impl Deref for Database {
    type Target = PostgresOptions;

    fn deref(&self) -> &PostgresOptions {
        &self.options
    }
}

impl Database {
    pub fn new(options: PostgresOptions) -> Database {
        Database { options, current: watch::Sender::new(None) }
    }

    /// Connects to the first host that answers.
    pub async fn connect(&self, purpose: Purpose) -> DbResult<Connected> {
        let first = match purpose {
            // In the order of the URL, so that all nodes come to the same host.
            Purpose::Heartbeat => None,
            Purpose::Reading | Purpose::Writing | Purpose::Maintenance => *self.current.borrow(),
        };
        let within = match purpose {
            Purpose::Heartbeat => (self.lease * 2 / 5).clamp(SHORTEST_TIMEOUT, CONNECT_TIMEOUT),
            Purpose::Reading | Purpose::Writing | Purpose::Maintenance => CONNECT_TIMEOUT,
        };
        let connected = self.connect_to(&self.url, first, within).await?;
        if purpose == Purpose::Heartbeat {
            self.use_host(connected.host);
        }
        Ok(connected)
    }

    /// Connects to the URL for `LISTEN`.
    pub async fn connect_to_listen(&self) -> DbResult<Connected> {
        let used = *self.current.borrow();
        match &self.listen_url {
            Some(url) => self.connect_to(url, None, CONNECT_TIMEOUT).await,
            None => self.connect_to(&self.url, used, CONNECT_TIMEOUT).await,
        }
    }

    fn use_host(&self, host: usize) {
        let mut left = None;
        self.current.send_if_modified(|current| {
            let changed = *current != Some(host);
            left = current.filter(|_| changed);
            *current = Some(host);
            changed
        });
        if let Some(left) = left {
            tracing::warn!(from = left + 1, to = host + 1, "the database is now used through another host of the URL");
        }
    }

    async fn connect_to(&self, url: &str, first: Option<usize>, within: Duration) -> DbResult<Connected> {
        // From before the attempt, so that a change during it is noticed.
        let current = self.current.subscribe();
        let config = self.config(url)?;
        let hosts = config.get_hosts().len().max(config.get_hostaddrs().len()).max(1);
        let mut order: Vec<usize> = (0..hosts).collect();
        order.sort_by_key(|host| Some(*host) != first);
        let (deadline, mut failures) = (Instant::now() + within, Vec::new());
        for (tried, host) in order.into_iter().enumerate() {
            let left = deadline.saturating_duration_since(Instant::now());
            let share = left / u32::try_from(hosts - tried).unwrap_or(1);
            let one = if hosts == 1 { config.clone() } else { alone(&config, host) };
            match tokio::time::timeout(share, one.connect(self.tls()?)).await {
                Ok(Ok((client, driver))) => {
                    return Ok(Connected { client, driver, host, current });
                }
                Ok(Err(error)) => failures.push(error_text(&error)),
                Err(_) => failures.push(format!("no connection within {} ms", share.as_millis())),
            }
        }
        if hosts > 1 {
            failures.iter_mut().zip(1..).for_each(|(failure, n)| *failure = format!("host {n}: {failure}"));
        }
        Err(Failed::Lost(failures.join("; ")))
    }

    fn config(&self, url: &str) -> DbResult<Config> {
        let mut config = url::read(url).map_err(|wrong| match wrong {
            WrongUrl::Syntax(error) => Failed::Lost(error_text(&error)),
            WrongUrl::Parameter(why) => Failed::Lost(why.into()),
        })?;
        config.keepalives_idle(KEEPALIVE_IDLE).keepalives_interval(KEEPALIVE_INTERVAL);
        config.keepalives_retries(KEEPALIVE_RETRIES).tcp_user_timeout(UNACKNOWLEDGED);
        if config.get_application_name().is_none() {
            config.application_name("stepwell");
        }
        // A store writes: with several hosts, a standby is never meant.
        if config.get_hosts().len() > 1 && config.get_target_session_attrs() == TargetSessionAttrs::Any {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        Ok(config)
    }

    fn tls(&self) -> DbResult<Tls> {
        Ok(match &self.ca_file {
            Some(file) => Tls::only(&Authorities::read(file).map_err(Failed::Lost)?),
            None => Tls::with(&Authorities::default()),
        })
    }
}

/// The same with only one of the hosts.
fn alone(config: &Config, host: usize) -> Config {
    let mut one = Config::new();
    if let Some(user) = config.get_user() {
        one.user(user);
    }
    if let Some(password) = config.get_password() {
        one.password(password);
    }
    if let Some(name) = config.get_dbname() {
        one.dbname(name);
    }
    if let Some(options) = config.get_options() {
        one.options(options);
    }
    if let Some(name) = config.get_application_name() {
        one.application_name(name);
    }
    match config.get_hosts().get(host) {
        Some(Host::Tcp(name)) => {
            one.host(name);
        }
        #[cfg(unix)]
        Some(Host::Unix(path)) => {
            one.host_path(path);
        }
        None => {}
    }
    if let Some(address) = config.get_hostaddrs().get(host) {
        one.hostaddr(*address);
    }
    if let Some(port) = config.get_ports().get(host).or(config.get_ports().first()) {
        one.port(*port);
    }
    one.ssl_mode(config.get_ssl_mode()).ssl_negotiation(config.get_ssl_negotiation());
    one.channel_binding(config.get_channel_binding()).target_session_attrs(config.get_target_session_attrs());
    one.keepalives(config.get_keepalives()).keepalives_idle(KEEPALIVE_IDLE).keepalives_interval(KEEPALIVE_INTERVAL);
    one.keepalives_retries(KEEPALIVE_RETRIES).tcp_user_timeout(UNACKNOWLEDGED);
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_keeps_the_settings_of_the_url() {
        let url = "postgres://ann:s%40x@one:1,two:2/flows?sslmode=require&channel_binding=require&options=-cx%3D1";
        let database = Database::new(PostgresOptions::new(url));
        let whole = database.config(url).unwrap();
        let second = alone(&whole, 1);
        assert_eq!((second.get_hosts(), second.get_ports()), (&[Host::Tcp("two".into())][..], &[2][..]));
        assert_eq!(second.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
        // Everything else is the same: the text form lists all settings.
        let text = |config: &Config| {
            let text = format!("{config:?}");
            let hidden = |name: &str, text: String| match text.split_once(name) {
                Some((start, rest)) => format!("{start}{}", rest.split_once(']').map_or("", |(_, rest)| rest)),
                None => text,
            };
            hidden("port: [", hidden("host: [", text))
        };
        assert_eq!(text(&second), text(&whole));
    }
}
