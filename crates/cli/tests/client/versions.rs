//! `workflow`: showing, comparing and deleting, on a server and in a directory.

use crate::harness::Installation;
use crate::served::{CHAIN, Served};

const HOOKED: &str = "name: hooked\ndescription: starts by a call\nlabels: {team: a}\ntrigger: webhook\n\
                      tasks: {a: {tool: now}}\n";

/// The same on a server and in a directory.
fn works(place: &Installation) {
    let file = place.file("chain.yaml", CHAIN);
    place.stepwell(&["apply", "-f", &file]).expect(0);
    place.stepwell(&["workflow", "diff", "chain"]).expect(2).says("one version only");
    let changed = CHAIN.replace("  b: {needs: a,", "  between: {needs: a, sleep: 1s}\n  b: {needs: [a, between],");
    place.file("chain.yaml", &changed);
    place.stepwell(&["apply", "-f", &file]).expect(0);

    let shown = place.stepwell(&["workflow", "show", "chain"]).expect(0);
    shown.says("chain (wf_").says("version 2, enabled").says("version   1 of").says("between").says("dialect   tasks");
    assert_eq!(place.stepwell(&["workflow", "show", "chain", "--source"]).expect(0).out, changed);
    assert_eq!(place.stepwell(&["workflow", "show", "chain", "--version", "1", "--source"]).expect(0).out, CHAIN);
    place.stepwell(&["workflow", "show", "chain", "--version", "1"]).expect(0).says("version 1 of");
    place.stepwell(&["workflow", "show", "chain", "--version", "9"]).expect(2).says("there is no version");
    let document = place.stepwell(&["workflow", "show", "chain", "--json"]).expect(0).json();
    assert_eq!((document["version"].as_u64(), document["source"].as_str()), (Some(2), Some(changed.as_str())));

    let diff = place.stepwell(&["workflow", "diff", "chain"]).expect(0);
    let expected = ["--- version 1", "+++ version 2", "+  between:", "+ step between (sleep 1s)", "+ edge between → b"];
    expected.iter().for_each(|part| assert!(diff.out.contains(part), "no {part} in {}", diff.out));
    let json = place.stepwell(&["workflow", "diff", "chain", "1", "2", "--json"]).expect(0).json();
    assert_eq!(json["graph"]["edges_added"], serde_json::json!(["a → between", "between → b"]));
    place.stepwell(&["workflow", "diff", "chain", "2", "2"]).expect(0).says("are the same");
    place.stepwell(&["workflow", "diff", "chain", "7"]).expect(2).says("has no version 7");

    let hooked = place.file("hooked.yaml", HOOKED);
    place.stepwell(&["apply", "-f", &hooked]).expect(0);
    place.stepwell(&["workflow", "show", "hooked"]).expect(0).says("starts by a call").says("team=a").says("webhook");
    place.stepwell(&["workflow", "delete", "hooked"]).expect(0).says("hooked (wf_").says("is deleted");
    place.stepwell(&["workflow", "delete", "hooked"]).expect(2).says("there is no workflow");
    let gone = place.stepwell(&["workflow", "list", "--deleted"]).expect(0).out;
    assert!(gone.contains("hooked (1)  deleted 20") && gone.starts_with("wf_"), "{gone}");
    let id = gone.split_whitespace().next().unwrap();
    place.stepwell(&["workflow", "show", id]).expect(0).says("version 1, deleted 20");
    place.stepwell(&["workflow", "restore", "hooked"]).expect(0).says("hooked (version 1) is restored");
    place.stepwell(&["workflow", "restore", "hooked"]).expect(1);
    place.stepwell(&["workflow", "show", "hooked"]).expect(0).says("enabled");
    place.stepwell(&["workflow", "delete", id]).expect(0);
    let again = place.stepwell(&["apply", "-f", &hooked]).expect(0).out;
    assert_eq!(again, format!("hooked: created; an earlier workflow of this name is deleted: {id}\n"));
    place.stepwell(&["workflow", "delete", "hooked"]).expect(0);
    let listed = place.stepwell(&["workflow", "list", "--json"]).expect(0);
    assert_eq!(listed.out, place.stepwell(&["workflows", "--json"]).expect(0).out);
    assert_eq!(listed.lines().len(), 1);
}

#[test]
fn workflows_are_shown_compared_and_deleted_on_a_server() {
    let served = Served::start();
    works(&served.place);
    served.stop().sound();
}

#[test]
fn workflows_are_shown_compared_and_deleted_in_a_directory() {
    let place = Installation::new();
    works(&place);
    place.sound();
}
