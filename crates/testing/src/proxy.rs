//! A proxy between a node and the database that can drop, stall and restore connections.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Open,
    /// Nothing arrives, and no one is told.
    Silent,
    Cut,
}

struct State {
    mode: Mode,
    next: u64,
    /// Both ends of every connection.
    connections: HashMap<u64, [TcpStream; 2]>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// Forwards everything that is sent to its address to another, unless it is cut.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Proxy {
    pub fn to(target: SocketAddr) -> Proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let state = State { mode: Mode::Open, next: 0, connections: HashMap::new() };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let accepting = shared.clone();
        // Ends with the process: tests have few of these.
        thread::spawn(move || listener.incoming().flatten().for_each(|client| accepting.accept(client, target)));
        Proxy { address, shared }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A URL of the target by way of this proxy.
    pub fn url(&self, url: &str) -> String {
        let (start, rest) = url.split_once("://").expect("a URL");
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let who = rest[..end].rsplit_once('@').map(|(who, _)| format!("{who}@")).unwrap_or_default();
        format!("{start}://{who}{}{}", self.address, &rest[end..])
    }

    /// Drops all connections, and every new one.
    pub fn cut(&self) {
        let mut state = self.shared.state();
        state.mode = Mode::Cut;
        state.connections.drain().for_each(|(_, ends)| close(&ends));
        self.shared.changed.notify_all();
    }

    /// From now on nothing gets through, in either direction; connections stay open.
    pub fn silence(&self) {
        self.shared.state().mode = Mode::Silent;
    }

    /// Held bytes are forwarded, and new connections succeed.
    pub fn heal(&self) {
        self.shared.state().mode = Mode::Open;
        self.shared.changed.notify_all();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.cut();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Waits until bytes may be forwarded. False if the connection is gone.
    fn passes(&self, id: u64) -> bool {
        let silent = |state: &mut State| state.mode == Mode::Silent && state.connections.contains_key(&id);
        let state = self.changed.wait_while(self.state(), silent).unwrap_or_else(|poisoned| poisoned.into_inner());
        state.connections.contains_key(&id)
    }

    fn accept(self: &Arc<Shared>, client: TcpStream, target: SocketAddr) {
        if self.state().mode == Mode::Cut {
            return;
        }
        let Ok(server) = TcpStream::connect(target) else { return };
        // Small messages are not kept waiting for more.
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let mut state = self.state();
        let id = state.next;
        state.next += 1;
        let ends = [client.try_clone().unwrap(), server.try_clone().unwrap()];
        if state.mode == Mode::Cut {
            return close(&ends);
        }
        state.connections.insert(id, ends);
        drop(state);
        let back = [server.try_clone().unwrap(), client.try_clone().unwrap()];
        for [from, to] in [[client, server], back] {
            let shared = self.clone();
            thread::spawn(move || shared.pump(id, from, to));
        }
    }

    fn pump(&self, id: u64, mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = [0; 16 * 1024];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            if !self.passes(id) || to.write_all(&buffer[..read]).is_err() {
                break;
            }
        }
        // That one side is gone is not seen through a silent network either.
        self.passes(id);
        if let Some(ends) = self.state().connections.remove(&id) {
            close(&ends);
        }
        self.changed.notify_all();
    }
}

fn close(ends: &[TcpStream; 2]) {
    ends.iter().for_each(|end| drop(end.shutdown(Shutdown::Both)));
}
