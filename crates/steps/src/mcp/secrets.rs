//! Fills the secrets into a server's configuration, for each new connection.

use super::{Context, Transport};
use std::collections::BTreeMap;
use stepwell_engine::{Bound, Mask};
use stepwell_store::OrgId;
use url::Url;

const BEGIN: &str = "{{";
const END: &str = "}}";

/// A configuration ready to connect with. Has no `Debug`: it holds secrets.
pub struct Filled {
    pub transport: Transport,
    pub mask: Mask,
}

/// A secret that was filled in, and the hosts it is bound to.
struct UsedSecret {
    name: String,
    hosts: std::sync::Arc<[String]>,
}

struct Filler<'a> {
    context: &'a Context,
    org: OrgId,
    mask: Mask,
    used: Vec<UsedSecret>,
}

/// Fails if a secret does not exist or may not be sent to the server.
pub async fn fill(context: &Context, org: OrgId, transport: &Transport) -> Result<Filled, String> {
    let mut filler = Filler { context, org, mask: Mask::default(), used: Vec::new() };
    let transport = match transport {
        Transport::Stdio { command, args, env, cwd } => {
            let mut filled = Vec::with_capacity(args.len());
            for arg in args {
                filled.push(filler.text(arg, |value| value.to_owned()).await?);
            }
            let env = filler.values(env).await?;
            Transport::Stdio { command: command.clone(), args: filled, env, cwd: cwd.clone() }
        }
        Transport::Http { url, headers } => {
            let url = filler.text(url, encoded).await?;
            Transport::Http { url, headers: filler.values(headers).await? }
        }
    };
    filler.check(&transport)?;
    Ok(Filled { transport, mask: filler.mask })
}

impl Filler<'_> {
    async fn values(&mut self, all: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>, String> {
        let mut filled = BTreeMap::new();
        for (name, value) in all {
            filled.insert(name.clone(), self.text(value, |value| value.to_owned()).await?);
        }
        Ok(filled)
    }

    async fn text(&mut self, text: &str, written: fn(&str) -> String) -> Result<String, String> {
        let (mut filled, mut left) = (String::new(), text);
        while let Some((before, rest)) = left.split_once(BEGIN) {
            let (inside, after) = rest.split_once(END).ok_or_else(|| format!("a `{BEGIN}` has no `{END}`"))?;
            let name = inside.trim().strip_prefix("secrets.");
            let name = name.ok_or("only {{secrets.NAME}} is supported in a server's configuration")?;
            filled.push_str(before);
            filled.push_str(&written(&self.secret(name).await?));
            left = after;
        }
        filled.push_str(left);
        Ok(filled)
    }

    async fn secret(&mut self, name: &str) -> Result<String, String> {
        let opened = self.context.safe.secret(self.org, name).await;
        let opened = opened.map_err(|error| format!("the secret {name} cannot be read: {error}"))?;
        let opened = opened
            .ok_or_else(|| format!("there is no secret named {name}; create it with `stepwell secret set {name}`"))?;
        self.mask.hide(name, &opened.value);
        self.used.push(UsedSecret { name: name.into(), hosts: opened.hosts });
        Ok(opened.value.to_string())
    }

    /// A bound secret may go only to its hosts, and never to a process, which could send it anywhere.
    fn check(&self, transport: &Transport) -> Result<(), String> {
        for UsedSecret { name, hosts } in self.used.iter().filter(|used| !used.hosts.is_empty()) {
            let bound = Bound { secret: name.as_str().into(), hosts: hosts.clone(), left_behind: false };
            let allowed = match transport {
                Transport::Stdio { .. } => false,
                Transport::Http { url, .. } => Url::parse(url).is_ok_and(|url| {
                    url.host_str().is_some_and(|host| bound.allows(host, url.port_or_known_default()))
                }),
            };
            if !allowed {
                let where_to = if matches!(transport, Transport::Http { .. }) { "this URL" } else { "a process" };
                return Err(format!("{bound}, so not to {where_to}"));
            }
        }
        Ok(())
    }
}

/// Percent-encodes a value for a URL.
fn encoded(value: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    value.bytes().map(|byte| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
