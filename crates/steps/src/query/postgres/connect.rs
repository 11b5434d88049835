//! Opens connections, only to addresses that the egress rules permit.

use super::super::failure;
use super::error;
use super::session::Session;
use crate::egress::Egress;
use std::net::IpAddr;
use std::time::Duration;
use stepwell_core::event::Failure;
use stepwell_store::postgres::{Tls, WrongUrl, read_url};
use stepwell_store::tls::Authorities;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// After this time without an acknowledgement from the peer, the connection is closed.
const PEER_TIMEOUT: Duration = Duration::from_secs(30);

/// The database to connect to.
pub struct Target<'a> {
    /// The connection's name, for messages.
    pub name: &'a str,
    pub url: &'a str,
    pub egress: Egress,
    pub timeout: Duration,
    /// Trusted besides the system's.
    pub authorities: &'a Authorities,
}

pub async fn connect(target: Target<'_>) -> Result<Session, Failure> {
    let Target { name, url, egress, timeout, authorities } = target;
    let config = read_url(url).map_err(|wrong| match wrong {
        // Not shown, because it may quote a password.
        WrongUrl::Syntax(_) => {
            failure::bad_connection(name, "its URL is not like postgres://user:password@host:5432/database")
        }
        WrongUrl::Parameter(why) => failure::bad_connection(name, why),
    })?;
    let tls = Tls::with(authorities);
    let connecting = async {
        let mut config = resolved(&config, name, egress).await?;
        config.connect_timeout(timeout).keepalives_idle(Duration::from_secs(10)).tcp_user_timeout(PEER_TIMEOUT);
        config.connect(tls.clone()).await.map_err(|error| error::connect_failed(name, &error))
    };
    let late = |_| failure::connect_failed(name, &format!("timed out after {} s", timeout.as_secs_f64()));
    let (client, connection) = tokio::time::timeout(timeout, connecting).await.map_err(late)??;
    let driver = tokio::spawn(async move {
        // Pending requests receive the error.
        let _ = connection.await;
    });
    Ok(Session { client, driver, tls })
}

/// A copy of the configuration with resolved addresses, so that connecting and cancelling use the checked addresses.
async fn resolved(from: &Config, name: &str, egress: Egress) -> Result<Config, Failure> {
    let mut config = Config::new();
    config.application_name(from.get_application_name().unwrap_or("stepwell"));
    from.get_user().map(|user| config.user(user));
    from.get_password().map(|password| config.password(password));
    from.get_dbname().map(|dbname| config.dbname(dbname));
    from.get_options().map(|options| config.options(options));
    config.ssl_mode(from.get_ssl_mode()).ssl_negotiation(from.get_ssl_negotiation());
    config.channel_binding(from.get_channel_binding()).target_session_attrs(from.get_target_session_attrs());
    config.load_balance_hosts(from.get_load_balance_hosts());
    let (hosts, given, ports) = (from.get_hosts(), from.get_hostaddrs(), from.get_ports());
    let count = hosts.len().max(given.len());
    if count == 0 {
        return Err(failure::bad_connection(name, "its URL has no host"));
    }
    if hosts.iter().any(|host| matches!(host, Host::Unix(_))) {
        egress.check_local().map_err(|why| failure::egress_refused(name, &why))?;
        return socket(config, name, from);
    }
    for n in 0..count {
        let host = match hosts.get(n) {
            Some(Host::Tcp(host)) => host.clone(),
            _ => given.get(n).map(IpAddr::to_string).unwrap_or_default(),
        };
        let dialled = given.get(n).map_or_else(|| host.clone(), IpAddr::to_string);
        let found = egress.addresses(&dialled).await;
        let found = found.map_err(|error| failure::connect_failed(name, &error.to_string()))?;
        for address in found.map_err(|why| failure::egress_refused(name, &why))? {
            config.host(&host).hostaddr(address).port(ports.get(n).or(ports.first()).copied().unwrap_or(5432));
        }
    }
    if config.get_hosts().is_empty() {
        return Err(failure::connect_failed(name, "its host name has no addresses"));
    }
    Ok(config)
}

/// A Unix domain socket has no address to pin and is always local.
fn socket(mut config: Config, name: &str, from: &Config) -> Result<Config, Failure> {
    let [Host::Unix(path)] = from.get_hosts() else {
        return Err(failure::bad_connection(name, "a Unix socket cannot be combined with other hosts"));
    };
    config.host_path(path).port(from.get_ports().first().copied().unwrap_or(5432));
    Ok(config)
}
