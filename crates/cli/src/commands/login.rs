//! `stepwell login`: a link that signs a browser in.

use super::{Common, Exit, document};
use crate::backend::with_server;
use crate::client::Call;
use crate::draw::plain;
use std::io::Write;
use stepwell_server::view::LinkView;

#[derive(clap::Args)]
pub struct Args {
    /// User to sign in (default: you; others require admin)
    #[arg(long)]
    user: Option<String>,
    #[command(flatten)]
    common: Common,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    with_server(&args.common.at, async |client| {
        let link: LinkView = client.data(Call::post(&["sign-in-links"]).query("user", args.user.as_ref())).await?;
        if args.common.json {
            document(&link)?;
        } else {
            writeln!(std::io::stdout().lock(), "{}", plain(&link.url))?;
        }
        Ok(Exit::Success)
    })
}
