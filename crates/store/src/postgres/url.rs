//! Reads database URLs, with the TLS parameters of other clients that need an explanation here.

use std::borrow::Cow;
use std::fmt;
use tokio_postgres::Config;

/// Why a URL cannot be used.
#[derive(Debug)]
pub enum WrongUrl {
    /// The text may quote a password.
    Syntax(tokio_postgres::Error),
    /// Safe to show.
    Parameter(&'static str),
}

impl fmt::Display for WrongUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WrongUrl::Syntax(error) => error.fmt(f),
            WrongUrl::Parameter(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for WrongUrl {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            WrongUrl::Syntax(error) => error.source(),
            WrongUrl::Parameter(_) => None,
        }
    }
}

/// Reads a URL. `sslmode=verify-full` and `verify-ca` mean `require`, which verifies the certificate and the host.
pub fn read(url: &str) -> Result<Config, WrongUrl> {
    // The driver too takes everything up to the first `@` for the login, so a password may contain a question mark.
    let login = url.find('@').map_or(0, |at| at + 1);
    let Some(start) = url[login..].find('?').map(|at| login + at + 1) else {
        return url.parse().map_err(WrongUrl::Syntax);
    };
    let (place, parameters) = url.split_at(start);
    let mut read = Vec::new();
    for parameter in parameters.split('&') {
        read.push(match parameter.split_once('=') {
            Some(("sslmode", "verify-full" | "verify-ca")) => Cow::Borrowed("sslmode=require"),
            Some(("sslmode", "allow")) => {
                return Err(WrongUrl::Parameter("`sslmode=allow` is not supported; write disable, prefer or require"));
            }
            Some(("sslrootcert", _)) => {
                let why = "`sslrootcert` is not supported in a URL; set `database.ca_file` for the server's own database, \
                           and `extra_ca_file` for those of query steps";
                return Err(WrongUrl::Parameter(why));
            }
            Some(("sslcert" | "sslkey", _)) => {
                return Err(WrongUrl::Parameter("client certificates (`sslcert`, `sslkey`) are not supported"));
            }
            _ => Cow::Borrowed(parameter),
        });
    }
    format!("{place}{}", read.join("&")).parse().map_err(WrongUrl::Syntax)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio_postgres::config::SslMode;

    #[test]
    fn modes_that_verify_mean_require() {
        for (parameters, expected) in [
            ("", SslMode::Prefer),
            ("?connect_timeout=3", SslMode::Prefer),
            ("?sslmode=disable", SslMode::Disable),
            ("?sslmode=require", SslMode::Require),
            ("?sslmode=verify-ca&connect_timeout=3", SslMode::Require),
            ("?connect_timeout=3&sslmode=verify-full", SslMode::Require),
        ] {
            let config = read(&format!("postgres://ann:a?b&sslmode=verify-full@db/flows{parameters}")).unwrap();
            assert_eq!(config.get_ssl_mode(), expected, "{parameters}");
            assert_eq!(config.get_password(), Some("a?b&sslmode=verify-full".as_bytes()));
        }
    }

    #[test]
    fn a_parameter_that_would_be_ignored_is_refused() {
        for (parameters, part) in [
            ("sslmode=allow", "prefer or require"),
            ("sslrootcert=/etc/ca.pem", "`database.ca_file`"),
            ("sslmode=verify-full&sslkey=x", "client certificates"),
            ("sslmode=wrong", "sslmode"),
        ] {
            let why = read(&format!("postgres://ann@db/flows?{parameters}")).unwrap_err();
            let why = format!("{why} {:?}", std::error::Error::source(&why));
            assert!(why.contains(part), "{why}");
        }
    }
}
