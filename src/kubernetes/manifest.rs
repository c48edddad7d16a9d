//! The objects of a run for `kubectl apply`: JSON, in which nothing must be quoted twice.
//!
//! All names contain the run's, and everything that may be secret is in the Secret. Only fields that every cluster
//! since 1.29 has are used.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::packed::{FILES, PORT, PackedRun, RESULTS, RUN, SECRETS, TOKEN};

/// How long Jobs and their logs are kept: somebody may look at them on the next morning.
const KEPT_S: u32 = 86_400;
/// How often a machine is replaced before the run begins.
const RETRIES: u32 = 3;
/// How long pods may take to end: a run writes its report then, and whoever fetches its results may still be at it.
const GRACE_S: u32 = 60;
/// The user of all pods; any but root would do.
const USER: u32 = 65_532;
/// Memory of a machine, beside its connections: most of it is for statistics.
const MEMORY: u64 = 256 << 20;
const MEMORY_PER_CONNECTION: u64 = 32 << 10;
const MEMORY_PER_MACHINE: u64 = 1 << 20;
/// It adds up, and sends nothing.
const COORDINATOR_CPU: &str = "500m";

/// Placement of the machines of a run, and their resources.
#[derive(Debug, Default)]
pub(super) struct Placement {
    pub namespace: Option<String>,
    pub is_one_per_node: bool,
    /// CPU request of each machine; the default follows from its part of the run.
    pub cpu: Option<String>,
    pub memory: Option<u64>,
}

/// The objects of a run.
#[derive(Debug)]
pub(super) struct Manifest<'a> {
    pub run: &'a str,
    pub image: &'a str,
    pub packed: &'a PackedRun,
    pub placing: &'a Placement,
}

/// The annotation of the coordinator's Job that has the mark of its log.
pub(super) const MARK: &str = "onrush/log-mark";

/// The parts of a run, each in pods of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Component {
    Coordinator,
    Workers,
}

impl Component {
    fn name(self) -> &'static str {
        match self {
            Self::Coordinator => "coordinator",
            Self::Workers => "workers",
        }
    }

    /// The name of its Job.
    pub fn job(self, run: &str) -> String {
        format!("onrush-{run}-{}", self.name())
    }

    /// Selector of its pods.
    pub fn selector(self, run: &str) -> String {
        format!("{},app.kubernetes.io/component={}", selector(run), self.name())
    }
}

/// Selector of all objects of a run.
pub(super) fn selector(run: &str) -> String {
    format!("app.kubernetes.io/name=onrush,app.kubernetes.io/instance=onrush-{run}")
}

impl Manifest<'_> {
    /// All objects, as text for `kubectl apply`.
    pub fn to_json(&self) -> String {
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": self.items() });
        format!("{list:#}\n")
    }

    fn items(&self) -> Vec<Value> {
        let PackedRun { secret, public, .. } = self.packed;
        let mut items = vec![self.service(), self.object("Secret", "data", secret)];
        if !public.is_empty() {
            items.push(self.object("ConfigMap", "binaryData", public));
        }
        items.extend([self.coordinator(), self.workers()]);
        items
    }

    /// The name of an object of which there is one.
    fn name(&self) -> String {
        format!("onrush-{}", self.run)
    }

    fn labels(&self, component: Option<Component>) -> Value {
        let mut labels = json!({ "app.kubernetes.io/name": "onrush", "app.kubernetes.io/instance": self.name() });
        if let Some(component) = component {
            labels["app.kubernetes.io/component"] = component.name().into();
        }
        labels
    }

    fn metadata(&self, name: String, component: Option<Component>) -> Value {
        let mut metadata = json!({ "name": name, "labels": self.labels(component) });
        if let Some(namespace) = &self.placing.namespace {
            metadata["namespace"] = namespace.as_str().into();
        }
        metadata
    }

    /// By its name the machines find the coordinator, before anybody knows whether it is ready.
    fn service(&self) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": self.metadata(self.name(), None),
            "spec": {
                "clusterIP": "None",
                "publishNotReadyAddresses": true,
                "selector": self.labels(Some(Component::Coordinator)),
                "ports": [{ "name": "coordinator", "port": PORT }],
            },
        })
    }

    fn object(&self, kind: &str, field: &str, contents: &BTreeMap<String, Vec<u8>>) -> Value {
        let data: BTreeMap<_, _> = contents.iter().map(|(key, bytes)| (key, STANDARD.encode(bytes))).collect();
        let mut object = json!({ "apiVersion": "v1", "kind": kind, "metadata": self.metadata(self.name(), None) });
        object[field] = json!(data);
        object
    }

    /// A coordinator is never replaced: its knowledge of the run is gone with it.
    fn coordinator(&self) -> Value {
        let machines = self.machines();
        let memory = MEMORY + u64::from(machines) * MEMORY_PER_MACHINE + 4 * self.packed.bytes();
        let mut mounts = vec![
            json!({ "name": "secret", "mountPath": SECRETS, "readOnly": true }),
            json!({ "name": "results", "mountPath": RESULTS }),
        ];
        let mut volumes = vec![
            json!({ "name": "secret", "secret": { "secretName": self.name() } }),
            json!({ "name": "results", "emptyDir": {} }),
        ];
        if !self.packed.public.is_empty() {
            mounts.push(json!({ "name": "files", "mountPath": FILES, "readOnly": true }));
            volumes.push(json!({ "name": "files", "configMap": { "name": self.name() } }));
        }
        let mut container =
            self.container(["kubernetes", "--run", &format!("{SECRETS}/{RUN}")], memory, COORDINATOR_CPU);
        container["ports"] = json!([{ "name": "coordinator", "containerPort": PORT }]);
        container["volumeMounts"] = mounts.into();
        let pod = self.pod(Component::Coordinator, container, volumes);
        let mut job = self.job(Component::Coordinator, json!({ "backoffLimit": 0, "template": pod }));
        job["metadata"]["annotations"] = json!({ MARK: self.packed.mark });
        job
    }

    /// A machine that fails before the run begins is replaced. One that fails later is missing in the result; its
    /// replacement is not needed, and ends at once.
    fn workers(&self) -> Value {
        let (machines, load) = (self.machines(), self.packed.plan.load);
        let most = load.max_inflight.max(self.packed.plan.in_flight_max.unwrap_or(0)).div_ceil(machines);
        let needed = MEMORY + u64::from(most) * MEMORY_PER_CONNECTION + 4 * self.packed.bytes();
        let cpu = self.placing.cpu.clone().unwrap_or_else(|| load.threads.to_string());
        let address = format!("{}:{PORT}", self.name());
        let token = format!("{SECRETS}/{TOKEN}");
        let join =
            self.packed.plan.output.machines.as_ref().map_or(0, |machines| machines.join.as_millis().div_ceil(1000));
        let join = format!("{join}s");
        let args = [
            "worker",
            "--coordinator",
            &address,
            "--token-file",
            &token,
            "--index",
            "$(JOB_COMPLETION_INDEX)",
            "--name",
            "$(NODE_NAME)",
            "--join-timeout",
            &join,
        ];
        let mut container = self.container(args, self.placing.memory.unwrap_or(needed), &cpu);
        container["env"] =
            json!([{ "name": "NODE_NAME", "valueFrom": { "fieldRef": { "fieldPath": "spec.nodeName" } } }]);
        container["volumeMounts"] = json!([{ "name": "secret", "mountPath": SECRETS, "readOnly": true }]);
        // The rest of the Secret comes from the coordinator, as far as it is needed.
        let items = json!([{ "key": TOKEN, "path": TOKEN }]);
        let volumes = vec![json!({ "name": "secret", "secret": { "secretName": self.name(), "items": items } })];
        let mut pod = self.pod(Component::Workers, container, volumes);
        let labels = json!({ "matchLabels": self.labels(Some(Component::Workers)) });
        let node = "kubernetes.io/hostname";
        if self.placing.is_one_per_node {
            pod["spec"]["affinity"] = json!({ "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [{ "topologyKey": node, "labelSelector": labels }],
            }});
        } else {
            pod["spec"]["topologySpreadConstraints"] = json!([{
                "maxSkew": 1, "topologyKey": node, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": labels,
            }]);
        }
        let spec = json!({
            "completionMode": "Indexed",
            "completions": machines,
            "parallelism": machines,
            "backoffLimitPerIndex": RETRIES,
            "template": pod,
        });
        self.job(Component::Workers, spec)
    }

    fn machines(&self) -> u32 {
        self.packed.plan.output.machines.as_ref().map_or(1, |machines| machines.count)
    }

    fn job(&self, component: Component, mut spec: Value) -> Value {
        spec["ttlSecondsAfterFinished"] = KEPT_S.into();
        let metadata = self.metadata(component.job(self.run), Some(component));
        json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec })
    }

    fn pod(&self, component: Component, container: Value, volumes: Vec<Value>) -> Value {
        json!({
            "metadata": { "labels": self.labels(Some(component)) },
            "spec": {
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": GRACE_S,
                "automountServiceAccountToken": false,
                "enableServiceLinks": false,
                "securityContext": {
                    "runAsNonRoot": true,
                    "runAsUser": USER,
                    "runAsGroup": USER,
                    "fsGroup": USER,
                    "seccompProfile": { "type": "RuntimeDefault" },
                },
                "containers": [container],
                "volumes": volumes,
            },
        })
    }

    /// Memory that is not requested could be missing, and a processor that is limited would stop in the middle of a
    /// measurement.
    fn container<const N: usize>(&self, args: [&str; N], memory: u64, cpu: &str) -> Value {
        let memory = format!("{}Mi", memory.div_ceil(1 << 20));
        json!({
            "name": "onrush",
            "image": self.image,
            "args": args.to_vec(),
            "resources": {
                "requests": { "cpu": cpu, "memory": memory },
                "limits": { "memory": memory },
            },
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": { "drop": ["ALL"] },
            },
        })
    }
}
