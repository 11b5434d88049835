//! The manifests: their parts fit together, and the real server accepts their settings and answers their probes.

use crate::container::instruction;
use crate::harness::{BINARY, Server, command, is_known, status_as, stop_seconds, text};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const MANIFESTS: [&str; 2] = ["deploy/kubernetes/stepwell.yaml", "deploy/kubernetes/single.yaml"];

struct Manifest {
    name: &'static str,
    objects: Vec<Value>,
}

impl Manifest {
    fn read(name: &'static str) -> Manifest {
        let read = |part: &str| match stepwell_formats::document(part.as_bytes(), Some(name)) {
            Ok(object) => object,
            Err(faults) => panic!("{name}: {:?}", faults.list),
        };
        let objects = text(name).split("\n---\n").map(read).collect();
        Manifest { name, objects }
    }

    fn all() -> [Manifest; 2] {
        MANIFESTS.map(Manifest::read)
    }

    #[track_caller]
    fn object(&self, kind: &str) -> &Value {
        let found = self.objects.iter().find(|object| object["kind"] == kind);
        found.unwrap_or_else(|| panic!("{} has no {kind}", self.name))
    }

    fn workload(&self) -> &Value {
        self.objects.iter().find(|object| object["kind"] == "Deployment" || object["kind"] == "StatefulSet").unwrap()
    }

    fn pod(&self) -> &Value {
        &self.workload()["spec"]["template"]["spec"]
    }

    fn container(&self) -> &Value {
        &self.pod()["containers"][0]
    }

    /// The configuration, in a file.
    fn config(&self, place: &tempfile::TempDir) -> std::path::PathBuf {
        let path = place.path().join("stepwell.yaml");
        std::fs::write(&path, self.object("ConfigMap")["data"]["stepwell.yaml"].as_str().unwrap()).unwrap();
        path
    }
}

fn names(list: &Value) -> BTreeSet<&str> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter()
        .map(|item| item["name"].as_str().unwrap_or_else(|| item["metadata"]["name"].as_str().unwrap()))
        .collect()
}

#[test]
fn the_parts_of_each_manifest_fit_together() {
    for manifest in Manifest::all() {
        let (workload, pod, container) = (manifest.workload(), manifest.pod(), manifest.container());
        let labels = &workload["spec"]["template"]["metadata"]["labels"];
        assert_eq!(&workload["spec"]["selector"]["matchLabels"], labels);
        let service = manifest.object("Service");
        assert_eq!(&service["spec"]["selector"], labels);
        assert!(names(&container["ports"]).contains(service["spec"]["ports"][0]["targetPort"].as_str().unwrap()));
        let claims = &workload["spec"]["volumeClaimTemplates"];
        let volumes: BTreeSet<&str> = names(&pod["volumes"]).union(&names(claims)).copied().collect();
        assert_eq!(names(&container["volumeMounts"]), volumes, "{}", manifest.name);
        let map = &pod["volumes"].as_array().unwrap().iter().find(|volume| volume["name"] == "config").unwrap();
        assert_eq!(map["configMap"]["name"], manifest.object("ConfigMap")["metadata"]["name"]);
    }
    let many = Manifest::read(MANIFESTS[0]);
    let labels = &many.workload()["spec"]["template"]["metadata"]["labels"];
    assert_eq!(&many.object("PodDisruptionBudget")["spec"]["selector"]["matchLabels"], labels);
    assert_eq!(Manifest::read(MANIFESTS[1]).workload()["spec"]["replicas"], 1, "the embedded store has one process");
}

#[test]
fn every_variable_of_the_manifests_means_something() {
    for manifest in Manifest::all() {
        for name in names(&manifest.container()["env"]) {
            assert!(is_known(name), "{}: {name}", manifest.name);
        }
    }
}

#[test]
fn what_the_manifests_run_answers_their_probes() {
    for manifest in Manifest::all() {
        let place = tempfile::tempdir().unwrap();
        let (config, data) = (manifest.config(&place), place.path().join("data"));
        let container = manifest.container();
        let mut command = command(BINARY);
        command.args(container["args"].as_array().unwrap().iter().map(|argument| argument.as_str().unwrap()));
        let env = container["env"].as_array().unwrap();
        let path = |name: &str| env.iter().any(|variable| variable["name"] == name);
        assert!(path("STEPWELL_CONFIG") && path("STEPWELL_DATA"));
        // What comes from a secret names the database, of which there is none here; the port may be taken.
        command.env("STEPWELL_CONFIG", config).env("STEPWELL_DATA", &data).env("STEPWELL_LISTEN", "0.0.0.0:0");
        let server = Server::start(&mut command, &data);
        for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
            let ask = &container[probe]["httpGet"];
            assert!(names(&container["ports"]).contains(ask["port"].as_str().unwrap()));
            // A kubelet asks for the address of the pod.
            let answer = status_as(&server, "10.1.2.3:7070", ask["path"].as_str().unwrap());
            assert_eq!(answer, 200, "{}: {probe}", manifest.name);
        }
        let service = manifest.object("Service")["metadata"]["name"].as_str().unwrap();
        assert_eq!(status_as(&server, service, "/api/v1/workflows"), 401, "the Service's name is not answered to");
        assert_eq!(status_as(&server, "elsewhere", "/api/v1/workflows"), 421);
        server.signal(rustix::process::Signal::TERM);
        assert_eq!(server.gone(), Some(0));
    }
}

#[test]
fn a_pod_has_more_time_to_stop_than_it_may_take() {
    for manifest in Manifest::all() {
        let place = tempfile::tempdir().unwrap();
        let before = &manifest.container()["lifecycle"]["preStop"]["exec"]["command"];
        assert_eq!(before[0], "sleep");
        let may = before[1].as_str().unwrap().parse::<u64>().unwrap() + stop_seconds(&manifest.config(&place));
        let given = manifest.pod()["terminationGracePeriodSeconds"].as_u64().unwrap();
        assert!(given > may, "{}: {given} s, and a stop may take {may} s", manifest.name);
    }
}

#[test]
fn a_pod_may_do_nothing_but_its_work() {
    for manifest in Manifest::all() {
        let (pod, container) = (&manifest.pod()["securityContext"], &manifest.container()["securityContext"]);
        assert_eq!((&pod["runAsNonRoot"], &pod["seccompProfile"]["type"]), (&json!(true), &json!("RuntimeDefault")));
        assert_eq!(instruction("USER"), format!("{}:{}", pod["runAsUser"], pod["runAsGroup"]));
        assert_eq!(
            (&container["readOnlyRootFilesystem"], &container["allowPrivilegeEscalation"]),
            (&json!(true), &json!(false))
        );
        assert_eq!(container["capabilities"]["drop"], json!(["ALL"]));
    }
}
