//! The objects of a run for `kubectl apply`. They are formatted as JSON, which needs no double quoting.
//!
//! All names contain the run's name, and everything that may be secret is in the Secret. Only fields known to every
//! cluster since 1.29 are used.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::packed::{FILES, PORT, PackedRun, RESULTS, RUN, SECRETS, TOKEN};

/// Time in seconds for which finished Jobs and their logs are kept: until the next morning.
const KEPT_S: u32 = 86_400;
/// Maximum number of times that a machine is replaced before the run starts.
const RETRIES: u32 = 3;
/// Time in seconds for pods to end. A run writes its report in this time, and its results may still be fetched.
const GRACE_S: u32 = 60;
/// User id of all pods; any id except root's would do.
const USER: u32 = 65_532;
/// Memory of a machine in bytes, without that for its connections. Most of it is for statistics.
const MEMORY: u64 = 256 << 20;
const MEMORY_PER_CONNECTION: u64 = 32 << 10;
const MEMORY_PER_MACHINE: u64 = 1 << 20;
/// The coordinator only adds up results, and sends no requests.
const COORDINATOR_CPU: &str = "500m";

/// Where the machines of a run are placed, and their resources.
#[derive(Debug, Default)]
pub(super) struct Placement {
    pub namespace: Option<String>,
    pub is_one_per_node: bool,
    /// Processors requested for each machine. The default depends on the machine's part of the run.
    pub cpu: Option<String>,
    pub memory: Option<u64>,
}

/// The objects of a run, and what they are made from.
#[derive(Debug)]
pub(super) struct Manifest<'a> {
    pub run: &'a str,
    pub image: &'a str,
    pub packed: &'a PackedRun,
    pub placing: &'a Placement,
}

/// Name of the annotation of the coordinator's Job that contains the mark of its log.
pub(super) const MARK: &str = "onrush/log-mark";

/// The components of a run, each with its own pods.
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

    /// Name of the component's Job.
    pub fn job(self, run: &str) -> String {
        format!("onrush-{run}-{}", self.name())
    }

    /// Label selector for the component's pods.
    pub fn selector(self, run: &str) -> String {
        format!("{},app.kubernetes.io/component={}", selector(run), self.name())
    }
}

/// Label selector for all objects of a run.
pub(super) fn selector(run: &str) -> String {
    format!("app.kubernetes.io/name=onrush,app.kubernetes.io/instance=onrush-{run}")
}

impl Manifest<'_> {
    /// All objects as JSON for `kubectl apply`.
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

    /// Name of the objects of which a run has only one.
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

    /// The Service by whose name the machines find the coordinator, even before it is ready.
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

    /// The coordinator's Job. A coordinator is never replaced, because its state would be lost.
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

    /// The Job of the machines. A machine that fails before the run starts is replaced. One that fails later is missing
    /// from the result; its replacement is not needed and ends at once.
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
        // The coordinator sends the rest of the Secret to the machines as they need it.
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

    /// The container of a pod. Memory is requested, because otherwise it may be missing. Processors are not limited,
    /// because a limit would stop the pod in the middle of a measurement.
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
