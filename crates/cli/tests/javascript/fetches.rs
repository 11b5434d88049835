//! Requests from code: only to hosts that the workflow lists, under the server's rules, with secrets that the code
//! never sees.

use super::{SECRET, call, failure, javascript, run, success};
use async_trait::async_trait;
use reqwest::Url;
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use stepwell_core::event::{Failure, Outcome};
use stepwell_engine::{HostGuard, HostRules, StepCall};

/// A server that answers with what it was asked, unless the path says otherwise, and where it writes that down.
fn echo() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let asked = seen.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let asked = asked.clone();
            // A caller who hangs up is what some tests are about.
            std::thread::spawn(move || drop(answer(stream, &asked)));
        }
    });
    (url, seen)
}

fn answer(mut stream: TcpStream, asked: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && lines.read_line(&mut head)? > 0 {}
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    lines.read_exact(&mut body)?;
    let body = String::from_utf8(body).unwrap();
    asked.lock().unwrap().push(format!("{head}{body}"));
    let words: Vec<&str> = head.split(' ').collect();
    let (path, target) = words[1].split_once("?to=").unwrap_or((words[1], ""));
    if path == "/binary" {
        stream.write_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: image/png\r\nconnection: close\r\ncontent-length: 5\r\n\r\n",
        )?;
        return stream.write_all(&[0x89, b'P', b'N', b'G', 0]);
    }
    let (status, text) = match path {
        "/missing" => ("404 Not Found", json!({"error": "none"}).to_string()),
        "/long" => ("200 OK", "x".repeat(300 * 1024)),
        "/moved" => ("302 Found", String::new()),
        _ => ("200 OK", json!({"method": words[0], "path": path, "head": head, "body": body}).to_string()),
    };
    let more = format!("location: {target}\r\ncontent-type: application/json\r\nconnection: close");
    write!(stream, "HTTP/1.1 {status}\r\n{more}\r\ncontent-length: {}\r\n\r\n{text}", text.len())
}

fn allowed(code: &str, url: &str, hosts: &[&str]) -> StepCall {
    let allow_hosts = hosts.iter().map(|host| host.to_string()).collect();
    StepCall { allow_hosts, ..call(code, json!({"url": url})) }
}

async fn fetched(code: &str, url: &str) -> Outcome {
    run(&javascript(1), allowed(code, url, &["127.0.0.1"])).await
}

#[tokio::test]
async fn code_calls_a_host_that_the_workflow_names_and_reads_the_answer() {
    let (url, seen) = echo();
    let code = "const result = await fetch(ctx.url + '/x');\nreturn await result.json();";
    let reply = success(fetched(code, &url).await);
    assert_eq!((&reply.body["method"], &reply.body["path"]), (&json!("GET"), &json!("/x")));
    let code = "const r = await fetch(ctx.url + '/y', {
            method: 'post', headers: {'X-Key': 'k'}, body: JSON.stringify({a: 1})});
        return [r.ok, r.status, r.headers.get('Content-Type') !== null, typeof await r.text(), (await r.json()).body]";
    assert_eq!(*success(fetched(code, &url).await).body, json!([true, 200, true, "string", "{\"a\":1}"]));
    let asked = seen.lock().unwrap()[1].clone();
    assert!(
        asked.starts_with("POST /y ") && asked.contains("x-key: k") && asked.contains("run_1:calculate:1"),
        "{asked}"
    );
    let code = "const r = await fetch(ctx.url + '/missing'); return [r.ok, r.status, (await r.json()).error]";
    assert_eq!(*success(fetched(code, &url).await).body, json!([false, 404, "none"]));
}

/// A policy that allows no host.
struct Nowhere;

#[async_trait]
impl HostGuard for Nowhere {
    async fn rules(&self) -> Result<Arc<dyn HostRules>, Failure> {
        Ok(Arc::new(Nowhere))
    }
}

impl HostRules for Nowhere {
    fn check(&self, _url: &Url, _method: &str) -> Result<(), Failure> {
        Err(Failure::new("denied_by_policy", "the policy says no"))
    }
}

#[tokio::test]
async fn policies_on_hosts_count_for_code_too() {
    let (url, seen) = echo();
    let code = "try { await fetch(ctx.url); return 'sent' } catch (error) { return error.message }";
    let call = StepCall { guard: Some(Arc::new(Nowhere)), ..allowed(code, &url, &["127.0.0.1"]) };
    let said = success(run(&javascript(1), call).await).body.to_string();
    assert!(said.contains("the policy says no"), "{said}");
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_answer_that_is_not_text_can_be_read_in_base64() {
    let (url, _) = echo();
    let code = "const r = await fetch(ctx.url + '/binary'); return [r.headers.get('content-type'), await r.base64()]";
    assert_eq!(*success(fetched(code, &url).await).body, json!(["image/png", "iVBORwA="]));
    let code = "const r = await fetch(ctx.url + '/' + encodeURI('größe €😀'), {method: 'POST', body: ctx.url});
        const text = await r.text(); return [text, await r.base64()]";
    let body = success(fetched(code, &url).await).body;
    use base64::Engine as _;
    let engine = base64::engine::general_purpose::STANDARD;
    assert_eq!(body[1], json!(engine.encode(body[0].as_str().unwrap())));
}

#[tokio::test]
async fn other_hosts_are_refused_before_anything_is_sent() {
    let (url, seen) = echo();
    let code = "try { await fetch(ctx.url); return 'sent' } catch (error) { return error.message }";
    let kinds = javascript(1);
    for hosts in [&["localhost"][..], &["*.0.0.1"], &["127.0.0.1:1"]] {
        let reply = success(run(&kinds, allowed(code, &url, hosts)).await);
        assert!(
            reply.body.as_str().unwrap().contains("not in the workflow's `allow_hosts`"),
            "{hosts:?}: {}",
            reply.body
        );
    }
    let none = run(&kinds, call("return await fetch('http://127.0.0.1')", json!({}))).await;
    let message = failure(none).0.message;
    assert!(
        message.contains("fetch is not defined") && message.contains("`allow_hosts: [api.example.com]`"),
        "{message}"
    );
    let none = failure(run(&kinds, call("return secrets.KEY", json!({}))).await).0.message;
    assert!(none.contains("secrets is not defined") && none.contains("allow_hosts"), "{none}");
    assert_eq!(seen.lock().unwrap().len(), 0);
    let metadata = "try { await fetch('http://169.254.169.254/') } catch (error) { return error.message }";
    let reply = success(run(&kinds, allowed(metadata, &url, &["169.254.169.254"])).await);
    assert!(reply.body.as_str().unwrap().contains("cloud metadata"), "{}", reply.body);
}

#[tokio::test]
async fn a_redirect_to_another_host_is_not_followed() {
    let (url, seen) = echo();
    let code = "const elsewhere = ctx.url.replace('127.0.0.1', 'localhost');
        try { await fetch(ctx.url + '/moved?to=' + elsewhere) } catch (error) { return error.message }";
    let reply = success(fetched(code, &url).await);
    assert!(reply.body.as_str().unwrap().contains("leads to a host that is not in"), "{}", reply.body);
    assert_eq!(seen.lock().unwrap().len(), 1);
    let code = "return (await (await fetch(ctx.url + '/moved?to=' + ctx.url + '/there')).json()).path";
    assert_eq!(*success(fetched(code, &url).await).body, json!("/there"));
}

#[tokio::test]
async fn a_secret_is_sent_but_never_seen() {
    let (url, seen) = echo();
    let code = "const key = secrets.KEY;
        const r = await fetch(ctx.url + '/?k=' + key, {
            method: 'POST', headers: {'X-Key': `Bearer ${key}`}, body: `{\"k\": \"${key}\"}`});
        const text = await r.text(); console.log(text, key); return {text, key}";
    let reply = success(fetched(code, &url).await);
    let asked = seen.lock().unwrap().join(" ");
    assert_eq!(asked.matches(SECRET).count(), 3, "{asked}");
    let shown = format!("{} {:?}", reply.body, reply.log);
    assert!(!shown.contains(SECRET) && shown.contains("{{secrets.KEY}}"), "{shown}");
}

#[tokio::test]
async fn data_that_looks_like_a_secret_is_only_data() {
    let (url, seen) = echo();
    let code = "const guess = ['{{secrets.KEY}}', 'secret-00000000000000000000000000000000.KEY.'].join(' ');
        await fetch(ctx.url, {method: 'POST', body: guess}); return guess";
    success(fetched(code, &url).await);
    assert!(!seen.lock().unwrap().join(" ").contains(SECRET));
    let (failure, _) =
        failure(fetched("await fetch(ctx.url + secrets.OTHER.slice(0, 0) + '/' + secrets.OTHER)", &url).await);
    assert!(failure.message.contains("there is no secret named OTHER"), "{failure:?}");
}

#[tokio::test]
async fn many_requests_go_at_the_same_time_and_each_gets_its_own_answer() {
    let (url, _) = echo();
    let code = "const all = Array.from({length: 50}, (_, i) => fetch(`${ctx.url}/${i}`).then(r => r.json()));
        return (await Promise.all(all)).every((answer, i) => answer.path === `/${i}`)";
    assert_eq!(*success(fetched(code, &url).await).body, json!(true));
}

#[tokio::test]
async fn an_abandoned_response_does_not_reach_the_next_evaluation() {
    let (url, _) = echo();
    let kinds = javascript(1);
    for n in 0..10 {
        let code = format!("fetch(ctx.url + '/old{n}'); fetch(ctx.url + '/older{n}'); return 1");
        success(run(&kinds, allowed(&code, &url, &["127.0.0.1"])).await);
        let code = format!("return (await (await fetch(ctx.url + '/new{n}')).json()).path");
        assert_eq!(*success(run(&kinds, allowed(&code, &url, &["127.0.0.1"])).await).body, json!(format!("/new{n}")));
    }
}

#[tokio::test]
async fn a_long_answer_is_refused_and_a_failed_step_says_what_may_have_happened() {
    let (url, _) = echo();
    let (failed, _) = failure(fetched("return await fetch(ctx.url + '/long')", &url).await);
    assert!(failed.message.contains("longer than 256 KB"), "{failed:?}");
    assert!(failed.may_have_happened && failed.retryable);
    let (failed, _) = failure(fetched("throw new Error('before')", &url).await);
    assert!(!failed.may_have_happened && !failed.retryable);
}

#[tokio::test]
async fn requests_are_bounded_in_size_and_number() {
    let (url, seen) = echo();
    let code = "const body = 'x'.repeat(2 << 20);
        try { await fetch(ctx.url, {method: 'POST', body}) } catch (error) { return error.message }";
    assert_eq!(*success(fetched(code, &url).await).body, json!("a request may have at most 1 MB"));
    assert_eq!(seen.lock().unwrap().len(), 0);
    let code = "const all = []; for (let i = 0; i < 3000; i++) all.push(fetch('http://elsewhere/').catch(error => error.message));
        const said = await Promise.all(all); return [said[999].includes('allow_hosts'), said[1000], said.length]";
    let reply = success(fetched(code, &url).await);
    assert_eq!(*reply.body, json!([true, "a step may make at most 1000 requests", 3_000]));
}

#[tokio::test]
async fn a_server_that_does_not_answer_costs_no_more_than_the_timeout() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let call = StepCall { timeout: Duration::from_secs(1), ..allowed("await fetch(ctx.url)", &url, &["127.0.0.1"]) };
    // The server never answers, so without the timeout this would take for ever.
    let outcome = tokio::time::timeout(stepwell_testing::PATIENCE, run(&javascript(1), call)).await;
    let (failure, _) = failure(outcome.expect("the step ends"));
    assert_eq!(&*failure.code, "timeout");
    assert!(failure.may_have_happened);
}

#[tokio::test]
async fn code_that_asks_for_much_at_once_gets_all_of_it_and_waits_in_its_own_memory() {
    let (url, seen) = echo();
    let code = "const all = await Promise.all([...Array(100)].map((_, n) => fetch(ctx.url + '/' + n)));
        return (await Promise.all(all.map(answer => answer.json()))).map(answer => answer.path)";
    let paths: Vec<String> = (0..100).map(|n| format!("/{n}")).collect();
    assert_eq!(*success(fetched(code, &url).await).body, json!(paths));
    assert_eq!(seen.lock().unwrap().len(), 100);
    // A host that never answers: what the server holds is a few requests, and the others are not begun.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let code = "const body = 'x'.repeat(900000);
        for (let n = 0; n < 200; n++) { fetch(ctx.url, {method: 'POST', body}); console.log(n) }
        await new Promise(() => {})";
    let call = StepCall { timeout: Duration::from_millis(1500), ..allowed(code, &url, &["127.0.0.1"]) };
    let Outcome::Failure { failure, reply } = run(&javascript(1), call).await else { panic!("it ended well") };
    assert_eq!(&*failure.code, "timeout");
    let log = reply.unwrap().log.unwrap();
    let asked = log.as_array().unwrap().len();
    assert!((8..=20).contains(&asked), "{asked}");
}
