//! `apply`: idempotent, all or nothing as far as can be known before, with and without a server.

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
