//! `apply`, with and without a server: it is idempotent, and checks everything before it changes anything.

use crate::harness::Installation;
use crate::served::{CHAIN, GATE, Served};

/// The same with either backend.
fn applies(place: &Installation) {
    let folder = place.data().parent().unwrap().join("flows");
    std::fs::create_dir_all(folder.join("more")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write("chain.yaml", CHAIN);
    write("more/gate.yml", GATE);
    write("notes.txt", "not a definition");
    write(".hidden.yaml", "nor this");
    let apply = |more: &[&str]| place.stepwell(&[&["apply", "-f", folder.to_str().unwrap()], more].concat());

    // Something is wrong with one: nothing is done.
    write("odd.json", "{\"name\": \"odd\", \"tasks\": {\"a\": {\"sleep\": 1, \"needs\": \"b\"}}}");
    apply(&[]).expect(2).says("unknown-step").says("odd.json");
    // A tool of this name exists already, which only the installation knows.
    let taken = "{\"name\": \"workflow_approve\", \"expose_as_tool\": true, \"tasks\": {\"a\": {\"sleep\": 1}}}";
    write("odd.json", taken);
    apply(&[]).expect(2).says("one of Stepwell's own tools").says("odd.json");
    assert_eq!(place.stepwell(&["workflows", "--json"]).expect(0).out, "");
    std::fs::remove_file(folder.join("odd.json")).unwrap();

    assert_eq!(apply(&[]).expect(0).out, "chain: created\ngate: created\n");
    assert_eq!(apply(&[]).expect(0).out, "chain: unchanged\ngate: unchanged\n");

    write("chain.yaml", &CHAIN.replace("got", "had"));
    let would = apply(&["--dry-run"]).expect(0).says("nothing was changed");
    let expected = ["chain: version 1 → 2", "-output: {got:", "+output: {had:", "gate: unchanged"];
    expected.iter().for_each(|text| assert!(would.out.contains(text), "{}", would.out));
    let done = apply(&[]).expect(0);
    assert_eq!(done.out, would.out, "what would be done is done");
    let lines = apply(&["--json"]).expect(0).lines();
    assert_eq!((&lines[0]["result"], &lines[0]["version"]), (&"unchanged".into(), &2.into()));
    assert_eq!(lines.len(), 2);
    let listed = place.stepwell(&["workflows", "--json"]).expect(0).lines();
    assert_eq!(listed.iter().map(|flow| flow["version"].as_u64().unwrap()).collect::<Vec<_>>(), [2, 1]);
}

#[test]
fn workflows_become_as_files_say_on_a_server() {
    let served = Served::start();
    applies(&served.place);
    served.stop().sound();
}

#[test]
fn workflows_become_as_files_say_in_a_directory() {
    let place = Installation::new();
    applies(&place);
    place.sound();
}

/// The same on a server and in a directory.
fn prunes(place: &Installation) {
    let root = place.data().parent().unwrap().to_path_buf();
    let folder = |name: &str| {
        std::fs::create_dir_all(root.join(name)).unwrap();
        root.join(name)
    };
    let (ours, theirs) = (folder("ours"), folder("theirs"));
    let named = |name: &str| CHAIN.replace("name: chain", &format!("name: {name}"));
    std::fs::write(ours.join("one.yaml"), named("one")).unwrap();
    std::fs::write(ours.join("two.yaml"), named("two")).unwrap();
    std::fs::write(theirs.join("three.yaml"), named("three")).unwrap();
    let (ours, theirs) = (ours.to_str().unwrap(), theirs.to_str().unwrap());
    let apply = |args: &[&str]| place.stepwell(&[&["apply", "-f"], args].concat());
    let names = || -> Vec<String> {
        let lines = place.stepwell(&["workflows", "--json"]).expect(0).lines();
        lines.iter().map(|one| one["name"].as_str().unwrap().to_string()).collect()
    };
    // Made by hand: no set has it, so no set deletes it.
    let by_hand = place.file("by-hand.yaml", &named("by-hand"));
    apply(&[&by_hand]).expect(0);
    apply(&[theirs, "--set", "theirs"]).expect(0).says("three: created");
    apply(&[ours, "--set", "ours", "--prune"]).expect(0).says("two: created");
    let shown = place.stepwell(&["workflow", "show", "one"]).expect(0);
    shown.says("set       ours");
    assert_eq!(names(), ["by-hand", "one", "three", "two"]);

    std::fs::remove_file(root.join("ours/two.yaml")).unwrap();
    apply(&[ours, "--set", "ours"]).expect(0);
    let would = apply(&[ours, "--set", "ours", "--prune", "--dry-run"]).expect(0);
    assert_eq!(would.out, "one: unchanged\ntwo: deleted\n");
    assert_eq!(names().len(), 4, "nothing was deleted yet");
    apply(&[&root.join("ours/one.yaml").to_string_lossy(), "--set", "ours", "--prune"]).expect(2).says("directories");
    apply(&[ours, "--prune"]).expect(2).says("--set");
    let lines = apply(&[ours, "--set", "ours", "--prune", "--json"]).expect(0).lines();
    assert_eq!((&lines[1]["workflow"], &lines[1]["result"]), (&"two".into(), &"deleted".into()));
    assert_eq!(names(), ["by-hand", "one", "three"]);

    // One that moves to another set is taken over only if that is asked for.
    std::fs::rename(root.join("ours/one.yaml"), root.join("theirs/one.yaml")).unwrap();
    std::fs::write(root.join("ours/four.yaml"), named("four")).unwrap();
    apply(&[theirs, "--set", "theirs"]).expect(2).says("belongs to the set \"ours\"; --adopt takes it over");
    apply(&[theirs, "--set", "theirs", "--adopt"]).expect(0);
    apply(&[ours, "--set", "ours", "--prune"]).expect(0);
    assert_eq!(names(), ["by-hand", "four", "one", "three"]);
}

#[test]
fn a_server_forgets_what_its_set_no_longer_has() {
    let served = Served::start();
    prunes(&served.place);
    served.stop().sound();
}

#[test]
fn a_directory_forgets_what_its_set_no_longer_has() {
    let place = Installation::new();
    prunes(&place);
    place.sound();
}

#[test]
fn what_cannot_be_applied_is_said_and_nothing_is_made() {
    let place = Installation::new();
    let (one, two) = (place.file("one.yaml", CHAIN), place.file("two.yaml", CHAIN));
    place.stepwell(&["apply", "-f", &one, &two]).expect(2).says("both define the workflow \"chain\"");
    place.stepwell(&["apply", "-f", "none.yaml"]).expect(2).says("none.yaml");
    let empty = place.data().parent().unwrap().join("empty");
    std::fs::create_dir(&empty).unwrap();
    place.stepwell(&["apply", "-f", empty.to_str().unwrap()]).expect(2).says("there is no definition in");
    place.stepwell(&["apply"]).expect(2);
    assert!(!place.data().exists());
    place.fed(&["apply", "-f", "-"], CHAIN).expect(0).says("chain: created");
}
