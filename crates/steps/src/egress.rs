//! Decides which addresses outgoing requests may reach. The address actually connected to is what counts: names are
//! checked after resolution, literal addresses before the request and at each redirect.
//!
//! A proxy would connect on our behalf and bypass these checks, so the client is built with `no_proxy` and ignores the
//! proxy variables of the environment.
//!
//! Not here: which hosts a workflow's code may call (`http::Hosts`).

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::error::Error;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use url::{Host, Url};

/// The egress rules of one server. The default allows public addresses only.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Egress {
    /// Whether loopback, private, shared (CGNAT) and unique local addresses may be reached.
    pub allow_private: bool,
}

/// The address that this server listens on, once it is known. Other processes on the machine trust requests from loopback,
/// and metrics are open to them, so steps of tenants must not be able to make such requests.
#[derive(Clone, Default, Debug)]
pub struct OwnAddress(Arc<OnceLock<SocketAddr>>);

impl OwnAddress {
    /// Sets the address. Only the first call counts.
    pub fn set(&self, address: SocketAddr) {
        let _ = self.0.set(address);
    }

    /// Whether a connection to this address would reach the server.
    pub fn is(&self, address: SocketAddr) -> bool {
        let Some(own) = self.0.get().filter(|own| own.port() == address.port()) else { return false };
        let (own, ip) = (own.ip().to_canonical(), address.ip().to_canonical());
        // Linux connects a request to an unspecified address to the machine itself.
        let local = ip.is_loopback() || ip.is_unspecified();
        own == ip || (local && (own.is_unspecified() || ip.is_unspecified())) || (own.is_unspecified() && is_local(ip))
    }

    /// Checks a URL whose host is an address.
    pub fn check_url(&self, url: &Url) -> Result<(), Refused> {
        let port = url.port_or_known_default().unwrap_or_default();
        let ip = match url.host() {
            Some(Host::Ipv4(ip)) => IpAddr::V4(ip),
            Some(Host::Ipv6(ip)) => IpAddr::V6(ip),
            Some(Host::Domain(_)) | None => return Ok(()),
        };
        if self.is(SocketAddr::new(ip, port)) { Err(Refused::own(&ip.to_string())) } else { Ok(()) }
    }
}

/// Whether an interface of this machine has the address: only then can a socket be bound to it. Sends nothing.
fn is_local(ip: IpAddr) -> bool {
    std::net::UdpSocket::bind((ip, 0)).is_ok()
}

impl Refused {
    pub fn own(host: &str) -> Refused {
        Refused { host: host.to_owned(), reach: Reach::Own }
    }
}

/// How the rules classify an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    Public,
    /// Reachable only if private addresses are allowed.
    Private,
    /// Link-local, or known to serve the machine's credentials: never reachable.
    Never,
    /// This server itself: not reachable unless the operator allows it.
    Own,
}

/// Why a request was not made. Shows the host as written and not its addresses, so that the answers of an internal name
/// server do not leak.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    host: String,
    reach: Reach,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = &self.host;
        match self.reach {
            Reach::Never => {
                write!(f, "{host} is a link-local or cloud metadata address; requests to it are never allowed")
            }
            Reach::Own => write!(
                f,
                "{host} is this server itself, which steps may not call: start runs with a workflow step; \
                    its operator can set `own_address`"
            ),
            Reach::Private | Reach::Public => write!(
                f,
                "{host} is not a public address, and this server does not allow requests to private ones; \
                    its operator can set `private_addresses`"
            ),
        }
    }
}

impl Error for Refused {}

impl Egress {
    /// Checks a URL whose host is an address. Names pass here and are checked when they are resolved. The `url` crate
    /// has already parsed forms such as `2130706433` and `0x7f.1` into addresses.
    pub fn check_url(self, url: &Url) -> Result<(), Refused> {
        let address = match url.host() {
            Some(Host::Ipv4(address)) => IpAddr::V4(address),
            Some(Host::Ipv6(address)) => IpAddr::V6(address),
            Some(Host::Domain(_)) | None => return Ok(()),
        };
        self.check(address).map_err(|reach| Refused { host: address.to_string(), reach })
    }

    /// Resolves a name and returns its permitted addresses.
    pub async fn addresses(self, host: &str) -> io::Result<Result<Vec<IpAddr>, Refused>> {
        let found = tokio::net::lookup_host((host, 0)).await?;
        Ok(self.permitted(host, found).map(|good| good.into_iter().map(|address| address.ip()).collect()))
    }

    /// Checks a Unix domain socket, whose peer is always on this machine.
    pub fn check_local(self) -> Result<(), Refused> {
        let refused = || Refused { host: "a local socket".into(), reach: Reach::Private };
        if self.allow_private { Ok(()) } else { Err(refused()) }
    }

    fn check(self, address: IpAddr) -> Result<(), Reach> {
        match reach(address) {
            Reach::Public => Ok(()),
            Reach::Private if self.allow_private => Ok(()),
            refused @ (Reach::Private | Reach::Never | Reach::Own) => Err(refused),
        }
    }

    /// Returns the permitted addresses of a name, or an error if it has addresses and none is permitted.
    fn permitted(self, host: &str, found: impl Iterator<Item = SocketAddr>) -> Result<Vec<SocketAddr>, Refused> {
        let mut refused = None;
        let mut good = Vec::new();
        for address in found {
            match self.check(address.ip()) {
                Ok(()) => good.push(address),
                // Report the strictest reason, whatever the order of the addresses.
                Err(Reach::Never) => refused = Some(Reach::Never),
                Err(other) => refused = refused.or(Some(other)),
            }
        }
        match refused {
            Some(reach) if good.is_empty() => Err(Refused { host: host.to_owned(), reach }),
            Some(_) | None => Ok(good),
        }
    }
}

/// Resolves names with the system's resolver and drops addresses that may not be reached.
impl Resolve for Egress {
    fn resolve(&self, name: Name) -> Resolving {
        let egress = *self;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            egress.answer(&name, found)
        })
    }
}

impl Egress {
    /// Returns the permitted addresses. The client connects to one of these and does not resolve the name again.
    fn answer(
        self,
        name: &Name,
        found: impl Iterator<Item = SocketAddr>,
    ) -> Result<Addrs, Box<dyn Error + Send + Sync>> {
        let good = self.permitted(name.as_str(), found)?;
        Ok(Box::new(good.into_iter()))
    }
}

/// Classifies an address. An IPv6 address that embeds an IPv4 address is classified as that address.
pub fn reach(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(address) => reach_v4(address),
        IpAddr::V6(address) => match embedded(address) {
            Some(inner) => reach_v4(inner),
            None => reach_v6(address),
        },
    }
}

fn reach_v4(address: Ipv4Addr) -> Reach {
    /// Alibaba Cloud's metadata service and Azure's host services, which are not link-local.
    const METADATA: [Ipv4Addr; 2] = [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(168, 63, 129, 16)];
    if address.is_link_local() || METADATA.contains(&address) {
        return Reach::Never;
    }
    let private = match address.octets() {
        // "This network": Linux routes 0.0.0.0 to the machine itself.
        [0, ..] | [10, ..] | [127, ..] => true,
        [100, second, ..] => second & 0xc0 == 64,
        [172, second, ..] => second & 0xf0 == 16,
        [192, 168, ..] | [192, 0, 0 | 2, _] => true,
        [198, 18 | 19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => true,
        // Multicast, reserved and broadcast.
        [first, ..] => first >= 224,
    };
    if private { Reach::Private } else { Reach::Public }
}

fn reach_v6(address: Ipv6Addr) -> Reach {
    let segments = address.segments();
    match segments {
        // AWS (instance metadata and the agents that serve credentials) and Google Cloud.
        [0xfd00, 0x0ec2, ..] | [0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x0254] => Reach::Never,
        [first, ..] if first & 0xffc0 == 0xfe80 => Reach::Never,
        // Local-use NAT64 prefix (RFC 8215): the position of the embedded IPv4 address is unknown.
        [0x0064, 0xff9b, 1, ..] => Reach::Never,
        // Unspecified and loopback; documentation and discard ranges.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] | [0x2001, 0x0db8, ..] | [0x0100, 0, 0, 0, ..] => Reach::Private,
        // Unique local, site-local, multicast.
        [first, ..] if first & 0xfe00 == 0xfc00 || first & 0xffc0 == 0xfec0 || first & 0xff00 == 0xff00 => {
            Reach::Private
        }
        _ => Reach::Public,
    }
}

/// The IPv4 address embedded in a mapped, compatible, translated (NAT64) or 6to4 address.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [.., c, d] = address.segments();
    let join = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        // `::` and `::1` embed nothing.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0 | 0xffff, ..] | [0, 0, 0, 0, 0xffff, 0, ..] => Some(join(c, d)),
        [0x0064, 0xff9b, 0, 0, 0, 0, ..] => Some(join(c, d)),
        [0x2002, high, low, ..] => Some(join(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(host: &str, expected: Reach) {
        let url = Url::parse(&format!("http://{host}/")).unwrap();
        let address = match url.host() {
            Some(Host::Ipv4(address)) => IpAddr::V4(address),
            Some(Host::Ipv6(address)) => IpAddr::V6(address),
            other => panic!("{host} is {other:?}"),
        };
        assert_eq!(reach(address), expected, "{host}");
        let allowed = |allow_private| Egress { allow_private }.check_url(&url).is_ok();
        assert_eq!(allowed(false), expected == Reach::Public, "{host}");
        assert_eq!(allowed(true), expected != Reach::Never, "{host}");
    }

    #[test]
    fn metadata_and_link_local_addresses_are_never_reachable_in_any_notation() {
        for host in [
            "169.254.169.254",
            "169.254.0.1",
            "2852039166",
            "0xa9fea9fe",
            "0xa9.0xfe.0xa9.0xfe",
            "0251.0376.0251.0376",
            "169.254.43518",
            "169.254.169.254.",
            "100.100.100.200",
            "168.63.129.16",
            "[fe80::1]",
            "[febf::1]",
            "[fd00:ec2::254]",
            "[fd00:ec2::23]",
            "[fd20:ce::254]",
            "[::ffff:169.254.169.254]",
            "[::169.254.169.254]",
            "[64:ff9b::169.254.169.254]",
            "[64:ff9b:1::169.254.169.254]",
            "[64:ff9b:1:a9fe:a9:fe00::]",
            "[2002:a9fe:a9fe::1]",
        ] {
            check(host, Reach::Never);
        }
    }

    #[test]
    fn private_addresses_need_permission() {
        for host in [
            "127.0.0.1",
            "127.1",
            "2130706433",
            "017700000001",
            "0.0.0.0",
            "0",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.64.0.1",
            "100.127.255.255",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "[::]",
            "[::1]",
            "[fc00::1]",
            "[fd12:3456::1]",
            "[fec0::1]",
            "[ff02::1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:10.0.0.1]",
            "[64:ff9b::10.0.0.1]",
        ] {
            check(host, Reach::Private);
        }
    }

    #[test]
    fn the_server_itself_is_known_by_every_address_that_leads_to_it() {
        let check = |own: &str, url: &str, expected: bool| {
            let address = OwnAddress::default();
            address.set(own.parse().unwrap());
            assert_eq!(address.check_url(&Url::parse(url).unwrap()).is_err(), expected, "{own} {url}");
        };
        check("127.0.0.1:7070", "http://127.0.0.1:7070/metrics", true);
        check("127.0.0.1:7070", "http://2130706433:7070/", true);
        check("127.0.0.1:7070", "http://0.0.0.0:7070/", true);
        check("127.0.0.1:7070", "http://[::ffff:127.0.0.1]:7070/", true);
        check("127.0.0.1:80", "http://127.0.0.1/", true);
        check("127.0.0.1:7070", "http://127.0.0.1:7071/", false);
        check("127.0.0.1:7070", "http://10.0.0.1:7070/", false);
        check("0.0.0.0:7070", "http://127.0.0.9:7070/", true);
        check("0.0.0.0:7070", "http://[::1]:7070/", true);
        check("[::]:7070", "http://127.0.0.1:7070/", true);
        check("0.0.0.0:7070", "http://203.0.113.9:7070/", false);
        assert!(OwnAddress::default().check_url(&Url::parse("http://127.0.0.1:7070/").unwrap()).is_ok());
    }

    #[test]
    fn neighbours_of_private_ranges_are_public() {
        for host in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.167.255.255",
            "192.169.0.0",
            "169.253.255.255",
            "223.255.255.255",
            "[2606:4700::1111]",
            "[::ffff:8.8.8.8]",
        ] {
            check(host, Reach::Public);
        }
    }

    #[test]
    fn a_name_keeps_only_its_permitted_addresses() {
        let at = |ip: &str| SocketAddr::new(ip.parse().unwrap(), 0);
        let permitted = |allow_private, ips: &[&str]| {
            let found: Vec<SocketAddr> = ips.iter().map(|ip| at(ip)).collect();
            Egress { allow_private }.permitted("name.example", found.into_iter())
        };
        let refused = |reach| Err(Refused { host: "name.example".into(), reach });
        assert_eq!(permitted(false, &["10.0.0.1", "1.1.1.1"]), Ok(vec![at("1.1.1.1")]));
        assert_eq!(permitted(true, &["169.254.169.254", "10.0.0.1"]), Ok(vec![at("10.0.0.1")]));
        assert_eq!(permitted(false, &["169.254.169.254", "10.0.0.1"]), refused(Reach::Never));
        assert_eq!(permitted(false, &["10.0.0.1"]), refused(Reach::Private));
        assert_eq!(permitted(false, &[]), Ok(Vec::new()));
    }

    /// Resolves to a different address each time, as a DNS rebinding attack does.
    struct Rebinding {
        egress: Egress,
        answers: std::sync::Mutex<Vec<&'static str>>,
    }

    impl Resolve for Rebinding {
        fn resolve(&self, name: Name) -> Resolving {
            let next = self.answers.lock().unwrap().remove(0);
            let found = [SocketAddr::new(next.parse().unwrap(), 0)];
            let answer = self.egress.answer(&name, found.into_iter());
            Box::pin(async move { answer })
        }
    }

    #[tokio::test]
    async fn every_resolution_of_a_name_is_checked() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.read(&mut [0; 4096]).await;
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").await;
            }
        });
        let answers = ["127.0.0.1", "169.254.169.254", "::ffff:169.254.169.254", "127.0.0.1"].to_vec();
        let resolver = Rebinding { egress: Egress { allow_private: true }, answers: answers.into() };
        stepwell_store::tls::install();
        let client = reqwest::Client::builder().no_proxy().dns_resolver(std::sync::Arc::new(resolver)).build().unwrap();
        let ask = async || client.get(format!("http://rebinding.example:{port}/")).send().await;
        assert!(ask().await.is_ok());
        for _ in 0..2 {
            let error = format!("{:?}", ask().await.unwrap_err());
            assert!(error.contains("reach: Never"), "{error}");
        }
        assert!(ask().await.is_ok());
    }
}
