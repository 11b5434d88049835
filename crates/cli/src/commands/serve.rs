//! `stepwell serve`: serves from a data directory or database until a signal arrives. And `stepwell config check`.

use super::Exit;
use crate::home::{Data, Home, configuration, configured, variable};
use crate::{embedded, logging, signals};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::pin::pin;
use stepwell_server::config::Config;
use stepwell_server::{Served, Server};
use stepwell_store::Location;

#[derive(clap::Args)]
pub struct Args {
    /// Address to listen on (default: $STEPWELL_LISTEN, else the configuration, else 127.0.0.1:7070)
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    #[command(flatten)]
    data: Data,
    /// Configuration file, YAML or JSON (default: $STEPWELL_CONFIG)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(clap::Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(clap::Subcommand)]
enum ConfigCommand {
    /// Report every fault of a configuration, or print the effective one
    Check {
        /// Configuration file, YAML or JSON (default: $STEPWELL_CONFIG)
        file: Option<PathBuf>,
    },
}

pub fn config(args: ConfigArgs) -> anyhow::Result<Exit> {
    let ConfigCommand::Check { file } = args.command;
    match configuration(file.as_deref(), &variable)? {
        Ok(config) => {
            println!("{:#}", serde_json::to_value(&config)?);
            Ok(Exit::Success)
        }
        Err(faults) => {
            faults.iter().for_each(|fault| eprintln!("{fault}"));
            Ok(Exit::BadInput)
        }
    }
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    // The command line takes precedence over the environment.
    let option = |name: &str| match name {
        "STEPWELL_LISTEN" => args.listen.clone(),
        "STEPWELL_DATABASE" => args.data.database(),
        _ => None,
    };
    let config = configured(args.config.as_deref(), &|name| option(name).or_else(|| variable(name)))?;
    logging::start_server(config.log);
    let data = args.data.or(config.data.clone());
    let directory = data.directory()?;
    let started = |served: &Served, location: &Location| {
        println!("Stepwell serves {} from {location}", served.public_url);
        let keys = ["admin.key", "agent.key"].map(|name| directory.join(name));
        // Another node may have the key files, or the key may come from a variable.
        if keys.iter().all(|file| file.exists()) {
            println!("Keys: {} and {}", keys[0].display(), keys[1].display());
        }
        match &served.link {
            Some(link) => println!("Sign a browser in, once: {link}"),
            None => println!("`stepwell login` makes a link that signs a browser in"),
        }
    };
    let served = embedded::runtime()?.block_on(async {
        let stop = signals::asked_to_stop()?;
        serve(&data, config, started, stop).await
    });
    served.map(|()| Exit::Success)
}

/// Serves from a data directory or database until `stop` resolves.
pub async fn serve(
    data: &Data,
    config: Config,
    started: impl FnOnce(&Served, &Location),
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let directory = data.directory()?;
    let reach = embedded::Reach { private: config.private_addresses(), ..embedded::Reach::default() };
    let own = (!config.own_address).then(|| reach.own.clone());
    // Runs may continue before the server listens. Port 0 stands for any port: then the address is known later.
    if let Some(own) = own.as_ref().filter(|_| config.listen.port() != 0) {
        own.set(config.listen);
    }
    let mut stop = pin!(stop);
    let home = tokio::select! {
        opened = data.open_with(config) => opened?,
        () = &mut stop => return Ok(()),
    };
    let engine = embedded::engine(&home, reach, embedded::Connect::Yes)?;
    let Home { store, location, config, .. } = home;
    let address = Address(directory.join("server.url"));
    let started = |served: &Served| {
        address.write(served.address);
        own.iter().for_each(|own| own.set(served.address));
        started(served, &location);
    };
    let server = Server { config, store, engine, directory: &directory };
    Ok(stepwell_server::serve(server, started, stop).await?)
}

/// The file with this server's address, for other commands. Removed when the server stops.
struct Address(PathBuf);

impl Address {
    fn write(&self, bound: SocketAddr) {
        let ip = match bound.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        let address = SocketAddr::new(ip, bound.port());
        if let Some(directory) = self.0.parent() {
            let mut maker = std::fs::DirBuilder::new();
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut maker, 0o700);
            // If this fails, so does the write below.
            let _ = maker.recursive(true).create(directory);
        }
        // Not fatal: other commands can use STEPWELL_URL instead.
        if let Err(error) = std::fs::write(&self.0, format!("http://{address}\n")) {
            tracing::warn!(%error, "cannot write the server's address file");
        }
    }
}

impl Drop for Address {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
