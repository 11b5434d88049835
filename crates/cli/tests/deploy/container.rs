//! The container recipe, without a container engine: the files it copies exist, and its command works.

use crate::harness::{BINARY, Server, command, is_known, json, root, text};
use std::path::PathBuf;
use std::process::Command;

/// Instructions with their arguments; continued lines are joined.
pub fn instructions() -> Vec<(String, String)> {
    let text = text("deploy/container/Containerfile");
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
    let joined = lines.join("\n").replace("\\\n", " ");
    let whole = joined.lines().filter_map(|line| line.split_once(' '));
    whole.map(|(name, rest)| (name.to_string(), rest.trim().to_string())).collect()
}

/// What the last stage says.
#[track_caller]
pub fn instruction(name: &str) -> String {
    let found = instructions().into_iter().rfind(|(is, _)| is == name);
    found.unwrap_or_else(|| panic!("the recipe has no {name}")).1
}

fn list(instruction: &str) -> Vec<String> {
    serde_json::from_value(json(&instruction[instruction.find('[').unwrap()..])).unwrap()
}

#[test]
fn everything_the_recipe_copies_is_there_and_is_not_ignored() {
    let kept = text(".dockerignore");
    let kept: Vec<&str> = kept.lines().filter_map(|line| line.strip_prefix('!')).collect();
    let copies = instructions().into_iter().filter(|(name, rest)| name == "COPY" && !rest.starts_with("--from"));
    let sources: Vec<String> = copies
        .flat_map(|(_, rest)| {
            let words: Vec<String> = rest.split_whitespace().map(str::to_string).collect();
            words[..words.len() - 1].to_vec()
        })
        .collect();
    assert!(!sources.is_empty());
    for source in sources {
        assert!(root().join(&source).exists(), "{source} is not there");
        assert!(kept.contains(&source.as_str()), "{source} is left out by .dockerignore");
    }
}

#[test]
fn the_recipe_builds_with_the_oldest_rust_that_will_do() {
    let wanted = text("Cargo.toml");
    let wanted = wanted.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap().trim_matches('"');
    let (_, image) =
        instructions().into_iter().find(|(name, image)| name == "FROM" && image.contains("/rust:")).unwrap();
    assert!(image.contains(&format!("/rust:{wanted}-")), "{image}, and Cargo.toml wants {wanted}");
}

#[test]
fn what_the_image_runs_serves_and_is_found_healthy_until_it_stops() {
    let place = tempfile::tempdir().unwrap();
    let (data, config) = (place.path().join("data"), place.path().join("stepwell.yaml"));
    std::fs::copy(root().join("deploy/container/stepwell.yaml"), &config).unwrap();
    let here = |text: &str| -> String {
        let text = text.replace("/usr/local/bin/stepwell", BINARY).replace("/var/lib/stepwell", data.to_str().unwrap());
        text.replace("/etc/stepwell/stepwell.yaml", config.to_str().unwrap())
    };
    let entry = list(&here(&instruction("ENTRYPOINT")));
    let mut command = command(&entry[0]);
    command.args(&entry[1..]).args(list(&instruction("CMD")));
    for (name, value) in instruction("ENV").split_whitespace().map(|set| set.split_once('=').unwrap()) {
        assert!(is_known(name), "{name}");
        command.env(name, here(value));
    }
    // As far as the image lets others reach it; only the port may be taken here.
    let listen = text("deploy/container/stepwell.yaml");
    assert!(listen.contains("listen: 0.0.0.0:7070"));
    let server = Server::start(command.env("STEPWELL_LISTEN", "0.0.0.0:0"), &data);
    assert_eq!(instruction("EXPOSE"), "7070");
    let healthy: Vec<String> = list(&instruction("HEALTHCHECK").replace("7070", server.port()));
    let healthy = || Command::new(&healthy[0]).args(&healthy[1..]).output().unwrap().status.success();
    assert!(healthy());
    assert_eq!(instruction("STOPSIGNAL"), "SIGTERM");
    server.signal(rustix::process::Signal::TERM);
    assert_eq!(server.gone(), Some(0));
    assert!(!healthy());
}

#[test]
fn the_image_is_not_run_by_root_and_keeps_its_data_in_the_volume() {
    let user = instruction("USER");
    assert!(user.split(':').all(|id| id.parse::<u32>().is_ok_and(|id| id > 0)), "{user}");
    let data =
        instruction("ENV").split_whitespace().find_map(|set| set.strip_prefix("STEPWELL_DATA=").map(PathBuf::from));
    assert_eq!(data, Some(PathBuf::from(instruction("VOLUME"))));
}
