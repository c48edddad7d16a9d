//! The objects of a run for `kubectl apply`, as JSON, which needs no double quoting.
//!
//! All names contain the run's name, and everything possibly secret is in the Secret. Only fields available in every
//! cluster since 1.29 are used.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::packed::{FILES, PORT, PackedRun, RESULTS, RUN, SECRETS, TOKEN};

/// Lifetime of finished Jobs and their logs, until the next morning.
const KEPT_S: u32 = 86_400;
/// Maximum number of replacements of a machine before the run starts.
const RETRIES: u32 = 3;
/// Time for pods to end: a run writes its report then, and its results may still be fetched.
const GRACE_S: u32 = 60;
/// User id of all pods; any but root would do.
const USER: u32 = 65_532;
/// Memory of a machine, excluding its connections. Most of it is for statistics.
const MEMORY: u64 = 256 << 20;
const MEMORY_PER_CONNECTION: u64 = 32 << 10;
const MEMORY_PER_MACHINE: u64 = 1 << 20;
/// The coordinator adds up, and sends nothing.
const COORDINATOR_CPU: &str = "500m";

/// Placement and resources of the machines of a run.
#[derive(Debug, Default)]
pub(super) struct Placement {
    pub namespace: Option<String>,
    pub is_one_per_node: bool,
    /// CPU request of each machine. The default depends on its part of the run.
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

/// Annotation of the coordinator's Job that holds the mark of its log.
pub(super) const MARK: &str = "onrush/log-mark";

/// Components of a run, each in its own pods.
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

    /// Selector of the component's pods.
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

    /// The name of an object that exists once per run.
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

    /// The machines find the coordinator by this name, even before it is ready.
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

    /// A coordinator is never replaced: its state would be lost.
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

    /// A machine that fails before the run starts is replaced. One that fails later is missing in the result. Its
    /// replacement is not needed and ends at once.
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
        // The coordinator sends the rest of the Secret as needed.
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

    /// Memory that is not requested may be missing. A limited processor would stop in the middle of a measurement.
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
