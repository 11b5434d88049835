//! `stepwell run` on a pseudo-terminal: it asks questions and reads the answers.

use crate::harness::{Installation, PATIENCE, Server};
use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;
use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Instant;

struct Terminal {
    child: Child,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    shown: String,
    /// The output so far.
    read: usize,
}

impl Terminal {
    fn start(place: &Installation, args: &[&str]) -> Terminal {
        let flags = rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY;
        let master = rustix::pty::openpt(flags).unwrap();
        rustix::pty::grantpt(&master).unwrap();
        rustix::pty::unlockpt(&master).unwrap();
        let name = rustix::pty::ptsname(&master, Vec::new()).unwrap();
        let other = rustix::fs::open(&*name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let size = rustix::termios::Winsize { ws_row: 30, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&other, size).unwrap();
        let end = || Stdio::from(other.try_clone().unwrap());
        let mut command = place.command(args);
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        let keyboard = File::from(master);
        let (to, screen) = mpsc::channel();
        let mut shows = keyboard.try_clone().unwrap();
        thread::spawn(move || {
            let mut bytes = [0; 4_096];
            while let Ok(count @ 1..) = shows.read(&mut bytes) {
                if to.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Terminal { child, keyboard, screen, shown: String::new(), read: 0 }
    }

    /// Waits until this is shown after the last awaited text.
    #[track_caller]
    fn until(&mut self, text: &str) {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = self.shown[self.read..].find(text) {
                self.read += found + text.len();
                return;
            }
            let left = end.saturating_duration_since(Instant::now());
            match self.screen.recv_timeout(left) {
                Ok(bytes) => self.shown.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => panic!("no {text:?} in\n{}", self.shown),
            }
        }
    }

    fn types(&mut self, line: &str) {
        self.keyboard.write_all(line.as_bytes()).unwrap();
        self.keyboard.write_all(b"\n").unwrap();
    }

    #[track_caller]
    fn ends(mut self, code: i32) -> String {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().unwrap() {
                while let Ok(bytes) = self.screen.try_recv() {
                    self.shown.push_str(&String::from_utf8_lossy(&bytes));
                }
                assert_eq!(status.code(), Some(code), "{}", self.shown);
                return self.shown;
            }
            thread::sleep(std::time::Duration::from_millis(5));
        }
        self.child.kill().unwrap();
        panic!("it does not end\n{}", self.shown);
    }
}

#[test]
fn a_gate_is_approved_with_a_comment() {
    let place = Installation::new();
    let file = place.file(
        "gate.yaml",
        "name: gate\ntasks:\n  ask: {approval: {message: \"Send {{input.what}}?\"}}\n  go: {needs: ask, tool: now}\n\
         output: \"{{tasks.ask.body.comment}}\"\n",
    );
    let mut terminal = Terminal::start(&place, &["run", &file, "--input", "what=flowers"]);
    terminal.until("ask asks for approval: Send flowers?");
    terminal.until("approve?");
    terminal.types("maybe");
    terminal.until("please answer with y, n or l");
    terminal.types("y");
    terminal.until("comment");
    terminal.types("with roses");
    terminal.until("with roses\"");
    let shown = terminal.ends(0);
    assert!(shown.contains("go") && shown.contains("success"), "{shown}");
    place.sound();
}

#[test]
fn several_gates_are_asked_one_after_the_other_and_a_form_is_filled_in() {
    let place = Installation::new();
    let file = place.file(
        "gates.yaml",
        "name: gates\ntasks:\n  one: {approval: {message: First?}}\n\
         \x20 two: {approval: {message: Second?, form: {type: object, properties: {n: {type: integer}}}}}\n\
         \x20 end: {needs: [one, two], tool: now}\noutput: \"{{tasks.two.body.data.n}}\"\n",
    );
    let mut terminal = Terminal::start(&place, &["run", &file]);
    terminal.until("First?");
    terminal.types("y");
    terminal.until("comment");
    terminal.types("");
    terminal.until("Second?");
    terminal.types("y");
    terminal.until("data as JSON");
    terminal.types("{\"n\": 42}");
    terminal.until("comment");
    terminal.types("");
    terminal.until("42");
    terminal.ends(0);
    place.sound();
}

#[test]
fn a_denied_gate_cancels_the_run() {
    let place = Installation::new();
    let file = place.file("gate.yaml", "name: gate\ntasks: {ask: {approval: true}}\n");
    let mut terminal = Terminal::start(&place, &["run", &file]);
    terminal.until("approve?");
    terminal.types("n");
    terminal.until("comment");
    terminal.types("");
    assert!(terminal.ends(3).contains("denied"));
}

#[test]
fn a_gate_of_a_child_is_asked_too() {
    let place = Installation::new();
    let child = place.file("child.yaml", "name: child\ntasks: {ask: {approval: {message: From inside?}}}\n");
    let parent = place.file("parent.yaml", "name: parent\ntasks: {inner: {workflow: child}}\n");
    let mut terminal = Terminal::start(&place, &["run", &parent, "--with", &child]);
    terminal.until("inner › ask asks for approval: From inside?");
    terminal.types("y");
    terminal.until("comment");
    terminal.types("");
    terminal.ends(0);
    place.sound();
}

#[test]
fn the_body_of_a_call_can_be_given_by_hand() {
    let place = Installation::new();
    let text = "name: hook\ntasks: {wait: {wait_for_webhook: {timeout: 1h}}}\noutput: \"{{tasks.wait.body.paid}}\"\n";
    let file = place.file("hook.yaml", text);
    let mut terminal = Terminal::start(&place, &["run", &file]);
    terminal.until("wait waits for a call");
    terminal.types("{paid}");
    terminal.until("this is not JSON");
    terminal.types("{\"paid\": \"in full\"}");
    terminal.until("\"in full\"");
    terminal.ends(0);
}

#[test]
fn a_question_left_for_later_is_asked_again_by_resume() {
    let place = Installation::new();
    let file = place.file("gate.yaml", "name: gate\ntasks: {ask: {approval: {message: Now?}}}\n");
    let mut terminal = Terminal::start(&place, &["run", &file]);
    terminal.until("approve?");
    terminal.types("l");
    terminal.until("ask waits");
    rustix::process::kill_process(rustix::process::Pid::from_child(&terminal.child), Signal::INT).unwrap();
    terminal.ends(130);
    let run = place.newest();
    let mut terminal = Terminal::start(&place, &["run", "--resume", &run]);
    terminal.until("Now?");
    terminal.types("y");
    terminal.until("comment");
    terminal.types("");
    terminal.ends(0);
}

#[test]
fn a_gate_that_times_out_is_no_longer_asked() {
    let place = Installation::new();
    let file = place.file("gate.yaml", "name: gate\ntasks: {ask: {approval: {timeout: 500ms}}}\n");
    let mut terminal = Terminal::start(&place, &["run", &file]);
    terminal.until("approve?");
    terminal.until("denied");
    terminal.ends(3);
}

#[test]
fn a_person_says_what_became_of_a_call_that_may_not_be_made_twice() {
    let answers: [(&[&str], i32, usize); 3] = [(&["h", "{\"n\": 9}"], 0, 1), (&["a"], 0, 2), (&["f"], 1, 1)];
    for (lines, code, calls) in answers {
        let (place, server) = (Installation::new(), Server::start());
        let text =
            format!("name: once\ntasks: {{call: {{url: \"{}\", at_most_once: true, on_unknown: ask}}}}\n", server.url);
        let file = place.file("once.yaml", &text);
        server.hold();
        let running = place.start(&["run", &file]);
        server.await_requests(1);
        running.kill();
        server.release();
        let run = place.newest();
        let mut terminal = Terminal::start(&place, &["run", "--resume", &run]);
        terminal.until("it is unknown whether its call happened");
        terminal.until("[l]ater");
        terminal.types(lines[0]);
        if let Some(line) = lines.get(1) {
            terminal.until("its result as JSON");
            terminal.types(line);
        }
        terminal.ends(code);
        assert_eq!(server.keys().len(), calls, "{lines:?}");
        place.sound();
    }
}

#[test]
fn the_items_of_a_for_each_share_a_line() {
    let (place, server) = (Installation::new(), Server::start());
    server.hold();
    let file = place.file(
        "all.yaml",
        &format!(
            "name: all\ntasks:\n  all:\n    for_each: [1, 2, 3]\n    max_parallel: 3\n    tasks:\n      \
             send: {{url: \"{}\"}}\n      odd: {{needs: send, if: \"item > 3\", tool: now}}\n",
            server.url
        ),
    );
    let mut terminal = Terminal::start(&place, &["run", &file]);
    server.await_requests(3);
    terminal.until("0 of 3 done, active: send ×3");
    server.release();
    terminal.until("3 items");
    let shown = terminal.ends(0);
    assert!(!shown.contains("all[0]"), "{shown}");
    place.sound();
}
