//! The configuration of a server with its secrets filled in, at each connection anew.

use super::{Around, Transport};
use std::collections::BTreeMap;
use stepwell_engine::{Bound, Mask};
use stepwell_store::OrgId;
use url::Url;

const BEGIN: &str = "{{";
const END: &str = "}}";

/// Ready to be connected to. Has no `Debug`: it holds secrets.
pub struct Filled {
    pub transport: Transport,
    pub mask: Mask,
}

/// A secret that went into it, and the hosts it may be sent to.
struct Taken {
    name: String,
    hosts: std::sync::Arc<[String]>,
}

struct Filler<'a> {
    around: &'a Around,
    org: OrgId,
    mask: Mask,
    taken: Vec<Taken>,
}

/// What is wrong, if a secret is not there or may not go there.
pub async fn fill(around: &Around, org: OrgId, transport: &Transport) -> Result<Filled, String> {
    let mut filler = Filler { around, org, mask: Mask::default(), taken: Vec::new() };
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
            let name = name.ok_or("only {{secrets.NAME}} can stand in the configuration of a server")?;
            filled.push_str(before);
            filled.push_str(&written(&self.secret(name).await?));
            left = after;
        }
        filled.push_str(left);
        Ok(filled)
    }

    async fn secret(&mut self, name: &str) -> Result<String, String> {
        let opened = self.around.safe.secret(self.org, name).await;
        let opened = opened.map_err(|error| format!("the secret {name} cannot be read: {error}"))?;
        let opened =
            opened.ok_or_else(|| format!("there is no secret named {name}; `stepwell secret set {name}` makes it"))?;
        self.mask.hide(name, &opened.value);
        self.taken.push(Taken { name: name.into(), hosts: opened.hosts });
        Ok(opened.value.to_string())
    }

    /// One that is bound to hosts goes to those only, and never to a process, which could send it anywhere.
    fn check(&self, transport: &Transport) -> Result<(), String> {
        for Taken { name, hosts } in self.taken.iter().filter(|taken| !taken.hosts.is_empty()) {
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

/// As it stands in a part of a URL.
fn encoded(value: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    value.bytes().map(|byte| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
