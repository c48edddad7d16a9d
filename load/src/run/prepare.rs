//! Sets up the workers of a plan: their shares, sockets and threads.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use anyhow::{Error, ensure};
use onrush_engine::backend::ports::Chooser;
use onrush_engine::backend::sim::Scenario;
use onrush_engine::backend::{Backend, Clock, Dialer, Epoll, PortRing, Uring, socket};
use onrush_engine::{
    Ahead, Config, Control, Demand, KeepSample, OpenLoop, Pacer, PassOn, Quota, RequestLog, Rules, SAMPLE_NS, Samples,
    Scale, Scheduled, Spare, tls,
};
use onrush_plan::connect::{ConnectOptions, SourceAddresses};
use onrush_plan::load::{self, Load};
use onrush_plan::{Dialect, Http, Io, Plan, Probing};
use onrush_proto::RequestParts;
use onrush_text::error_reason;
use rustix::io::Errno;
use thiserror::Error;

use super::congestion::check_congestion_control;
use super::dues::{worker_due_times, worker_seed};
use super::monitor::Monitor;
use super::simulated::Simulated;
use super::sockets::SocketSampler;
use super::supervisor::Prepared;
use super::threads::Threads;
use super::waiting::PATIENCE;
use super::worker::{RunScript, Worker, WorkerScript, http2_options};
use super::workers::Workers;
use super::{host, nanos, spin};
use crate::requests::{Entries, Listed, Picker, RequestNumbering, Values};
use crate::resolve::Addresses;

/// Maximum memory of all HTTP/2 connections for unfinished header blocks, in bytes. A server that never ends a block
/// can make each connection keep 80 KiB.
const BLOCKS_MAX: usize = 64 << 20;

/// A source address does not belong to this machine. Worded as in wrk-cmm.
#[derive(Debug, Error)]
#[error("{program}bind({address}): {reason}{remedy}")]
pub struct BadSource {
    program: String,
    address: IpAddr,
    reason: String,
    remedy: &'static str,
}

/// Sets up all workers of a plan on the backend from [`choose_backend`](super::choice::choose_backend).
///
/// - `spares`: idle connections of an earlier session to the same target, if this session also passes on its own.
/// - `takers`: receive the entries of the request log, and samples of responses.
///
/// # Errors
///
/// Fails with [`NotStarted`](super::NotStarted), or if a scenario, certificate or key file of the plan is faulty.
pub fn prepare_run(
    plan: &Plan,
    addresses: &Addresses,
    backend: &'static str,
    script: Option<RunScript>,
    spares: Option<Vec<Spare>>,
    (pass_on, keep): (Option<PassOn>, Option<KeepSample>),
) -> anyhow::Result<Prepared> {
    let (descriptors, files) = (host::raise_descriptor_limit(plan), host::descriptors_needed_by_plan(plan));
    let mut plan = Cow::Borrowed(plan);
    if let Some(room) = host::connections_within_limit(&plan, descriptors) {
        plan.to_mut().load = Load::new(plan.load.threads, room);
    }
    let (plan, load) = (&*plan, &plan.load);
    if let Some(sources) = plan.connect.sources {
        check_source_addresses(sources, plan.dialect)?;
    }
    check_congestion_control(plan, addresses)?;
    let sockets = SocketSampler::prepare(plan, addresses)?;
    let tls = plan.tls.as_ref().map(tls::Config::new).transpose()?;
    if let (Some(script), Some(limit)) = (&script, plan.requests_per_connection) {
        let (function, length) =
            (if script.writes_batches { "request()" } else { "wrk.request()" }, script.depth as u64);
        ensure!(length <= limit.most, onrush_engine::batch_too_long_message(function, length, limit));
    }
    let parts = plan.request.with_body(plan.shared_body()?);
    let pipelines = script.as_ref().is_some_and(|script| script.depth > 1);
    let scripts = script.map_or_else(Vec::new, |script| script.workers);
    let spins = spin::decide_busy_poll(plan, &addresses.0).spins;
    let config = |index| Config { spins, ..worker_config(plan, addresses, tls.clone(), pipelines, index) };
    let monitor = Monitor::start_watching(plan, addresses);
    let control = Arc::new(Control::new(plan.load.threads));
    let mut workers = create_workers(plan, &parts, config, scripts, list_requests(plan, &parts)?, spares, &control);
    if let (Some(log), Some(pass_on)) = (&plan.output.request_log, pass_on) {
        for worker in &mut workers {
            worker.log = Some(RequestLog::new(log.one_of, worker.config.seed, Arc::clone(&pass_on)));
        }
    }
    if let (Some(samples), Some(keep)) = (&plan.output.samples, keep) {
        let quota = Arc::new(Quota::new(samples.each));
        for worker in &mut workers {
            let checks = plan.checks.count() as u8;
            worker.samples = Some(Samples::new(Arc::clone(&quota), Arc::clone(&keep), checks, &control.kept));
        }
    }
    let links = workers.iter().map(|worker| Arc::clone(&worker.link)).collect();
    let (clock, dialer) = (Clock::start(), dialer_factory(plan));
    let workers = match &plan.io {
        Io::Sim(path) => {
            let scenario = Scenario::read(path)?.share(load.threads, plan.seed)?;
            Workers::Simulated(Simulated::spawn(workers, scenario)?)
        }
        _ if backend == Uring::NAME => Workers::Threads(Threads::spawn(workers, files, move |config| {
            Uring::new(config.slots(), clock, dialer(config)?)
        })?),
        _ => Workers::Threads(Threads::spawn(workers, files, move |config| {
            Epoll::new(config.slots(), clock, dialer(config)?)
        })?),
    };
    monitor.iter().for_each(Monitor::wait_for_first_search);
    Ok(Prepared { backend, descriptors, control, links, workers, monitor, sockets })
}

/// Returns a factory for the workers' dialers.
fn dialer_factory(plan: &Plan) -> impl Fn(&Config) -> Result<Dialer, Errno> + Clone + Send + use<> {
    let first = plan.first_connection as usize;
    let (connect, connections, ring) =
        (plan.connect.clone(), plan.load.max_inflight, PortRing::from_system_settings().ok());
    move |config| {
        let share_before = (config.first_connection - first) as f64 / f64::from(connections);
        let ports = ring.as_ref().map(|ring| Chooser::new(ring, share_before));
        let has_slices = config.rules.open_loop.is_some_and(|rules| rules.slice_ns > 0);
        Ok(Dialer::new(&connect, config.first_connection)?.with_ports(ports).with_timestamps(has_slices))
    }
}

/// Checks that this machine has all source addresses.
fn check_source_addresses(sources: SourceAddresses, dialect: Dialect) -> Result<(), BadSource> {
    for address in (0..sources.count() as usize).map(|place| sources.of_connection(place)) {
        socket::try_source(address).map_err(|errno| {
            let reason = error_reason(&errno.into());
            let program = if dialect.is_compat() { format!("{}: ", dialect.name()) } else { String::new() };
            let remedy = if dialect.is_compat() { "" } else { "; 'ip address' lists this machine's addresses" };
            BadSource { program, address, reason, remedy }
        })?;
    }
    Ok(())
}

/// The workers that run a plan together.
pub(super) fn create_workers(
    plan: &Plan,
    parts: &RequestParts,
    config: impl Fn(u32) -> Config,
    scripts: Vec<WorkerScript>,
    listed: Option<Listed>,
    mut spares: Option<Vec<Spare>>,
    control: &Arc<Control>,
) -> Vec<Worker> {
    let mut scripts = scripts.into_iter();
    let worker = |index: u32| {
        let config = config(index);
        Worker {
            pacer: create_pacer(plan, &config, index),
            config,
            parts: parts.clone(),
            http: plan.http.clone(),
            blocks_max: BLOCKS_MAX / plan.load.threads as usize,
            script: scripts.next(),
            list: listed.as_ref().map(|listed| listed.of_worker(index.into(), plan.load.threads.into())),
            log: None,
            samples: None,
            spares: spares.as_mut().map(|spares| take_worker_share(spares, plan.load.threads - index)),
            control: Arc::clone(control),
            link: Arc::default(),
        }
    };
    (0..plan.load.threads).map(worker).collect()
}

/// The requests of a run that differ, in the order in which a single worker would send them; `Ok(None)` if all requests
/// are the same.
pub(super) fn list_requests(plan: &Plan, parts: &RequestParts) -> anyhow::Result<Option<Listed>> {
    let (list, templates) = (&plan.list, &plan.templates);
    let first = list.as_ref().map(|list| (list.part, list.seed));
    let Some((part, seed)) = first.or(templates.as_ref().map(|templates| (templates.part, templates.seed))) else {
        return Ok(None);
    };
    let entries = list.as_ref().map(|list| Entries::from_list(list, &plan.target, templates.is_some())).transpose()?;
    let values =
        templates.as_ref().map(|templates| Values::from_files(&templates.files)).transpose().map_err(Error::msg)?;
    let order = list.as_ref().map(|list| list.order).unwrap_or_default();
    let length = entries.as_ref().map_or(1, Entries::len);
    let weights = entries.as_ref().map(Entries::weights).unwrap_or_default();
    let whole = plan.stop.requests.map_or(u64::MAX, |requests| requests / u64::from(plan.load.threads));
    let listed = Listed {
        picker: Picker::new(order, length, weights, seed),
        entries: entries.map(Arc::new),
        values,
        seed,
        parts: parts.clone(),
        numbers: RequestNumbering::new(part, length as u64, whole),
    };
    listed.prepare_values().map(Some).map_err(Error::msg)
}

/// Removes the share of the next worker from `rest`, which `workers` workers share.
fn take_worker_share<T>(rest: &mut Vec<T>, workers: u32) -> Vec<T> {
    rest.split_off(rest.len() - rest.len() / workers as usize)
}

/// The pacer of worker `index`: when it sends its requests.
pub(super) fn create_pacer(plan: &Plan, config: &Config, index: u32) -> Pacer {
    plan.schedule.as_ref().map_or(Pacer::Closed, |schedule| {
        let slice_ns = config.rules.open_loop.map_or(0, |rules| rules.slice_ns);
        Pacer::Scheduled(Scheduled::new(worker_due_times(plan, schedule, index), schedule.catch_up, slice_ns))
    })
}

/// Approximate size of a connection's receive buffer, in bytes. Linux grows a TCP buffer up to a share of the maximum in
/// `net.ipv4.tcp_rmem`. For a Unix socket, the sender's buffer matters, which has 208 KiB by default.
/// `net.core.rmem_max` limits `--rcvbuf`, by default to 208 KiB.
const TCP_BUFFERED: u64 = 1024 * 1024;
const UNIX_BUFFERED: u64 = 128 * 1024;
const RCVBUF_MAX: u32 = 208 * 1024;

/// Maximum amount that a server may send before its windows are renewed or the socket is full.
fn response_ahead_limits(http: &Http, connect: &ConnectOptions) -> Ahead {
    let options = http2_options(http, 1);
    let [response, connection] = [options.window, options.connection_window].map(|window| u64::from(window) / 2);
    let buffered = match connect.socket.rcvbuf {
        _ if connect.unix.is_some() => UNIX_BUFFERED,
        Some(size) => size.min(RCVBUF_MAX).into(),
        None => TCP_BUFFERED,
    };
    Ahead { response, connection: connection.min(buffered) }
}

/// Configuration of worker `index`: its share of the plan.
pub(super) fn worker_config(
    plan: &Plan,
    addresses: &Addresses,
    tls: Option<tls::Config>,
    pipelines: bool,
    index: u32,
) -> Config {
    let requests = plan.stop.requests.map(|requests| load::share(requests, plan.load.threads, index));
    // Connections beyond the number of requests would only be opened and closed.
    let at_most = |connections| u64::from(connections).min(requests.unwrap_or(u64::MAX).max(1)) as u32;
    Config {
        max_inflight: at_most(plan.load.most_connections_of(index)),
        in_flight_max: plan.in_flight_max.map(|most| load::share(most.into(), plan.load.threads, index)),
        stand_ins: if plan.http.may_be_http2() {
            at_most(plan.load.most_connections_of(index)).min(host::STAND_INS_MAX)
        } else {
            0
        },
        demand: match &plan.levels {
            Some(levels) => Demand::Staged(levels.share(index, plan.load.threads)),
            None if plan.load.may_grow() => Demand::Growing(at_most(plan.load.connections_of(index))),
            None => Demand::All,
        },
        sample_ns: SAMPLE_NS,
        first_connection: (plan.first_connection + plan.load.most_connections_before(index)) as usize,
        depth: 1,
        streams: plan.http.streams.unwrap_or(1) as usize,
        lingers: plan.http.is_http2().then(|| response_ahead_limits(&plan.http, &plan.connect)),
        requests_per_connection: plan.requests_per_connection,
        tunnel: plan.connect.proxy.as_ref().and_then(|proxy| proxy.tunnel_request(&plan.target)),
        addresses: addresses.0.clone(),
        tls,
        checks: plan.checks.clone(),
        rules: Rules {
            scale: match (plan.dialect, &plan.schedule) {
                (Dialect::Native, _) => Scale::EXACT,
                (_, Some(_)) => Scale::WRK2,
                (_, None) => Scale::WRK,
            },
            timeout_ns: plan.timeout.map(nanos),
            phases: plan.phases,
            by_name: plan.list.as_ref().is_some_and(|list| !list.names.is_empty()),
            pipelines,
            open_loop: plan.schedule.as_ref().map(|schedule| {
                let slice = schedule.send_slice.unwrap_or_default();
                OpenLoop {
                    // The wait for the end of a slice does not make a request late.
                    max_late_ns: schedule.max_late.map(|late| nanos(late + slice)),
                    late_ns: nanos(schedule.late_after()),
                    slice_ns: nanos(slice),
                    as_wrk2: plan.dialect == Dialect::Wrk2,
                    per_batch: plan.output.batch_latency,
                }
            }),
        },
        warmup_ns: nanos(plan.warmup),
        duration_ns: plan.stop.duration.map(nanos),
        run_on_ns: nanos(plan.run_on),
        stays: Probing::keeps_workers(plan),
        requests,
        give_up_ns: plan.give_up.map(nanos),
        patience_ns: nanos(plan.give_up.unwrap_or(PATIENCE)),
        spins: false,
        seed: worker_seed(plan, index),
        transcribe: plan.once,
    }
}

#[cfg(test)]
mod tests {
    use onrush_plan::http::{Http2Settings, HttpVersion};

    use super::*;

    #[test]
    fn receive_limits_follow_window_and_socket_buffer() {
        let of = |change: fn(&mut Http, &mut ConnectOptions)| {
            let mut http =
                Http { versions: vec![HttpVersion::Http2], streams: None, settings: Http2Settings::default() };
            let mut connect = ConnectOptions::default();
            change(&mut http, &mut connect);
            let Ahead { response, connection } = response_ahead_limits(&http, &connect);
            (response, connection)
        };
        let half = of(|_, _| ()).0;
        assert_eq!(of(|_, _| ()), (half, TCP_BUFFERED));
        assert!(half > TCP_BUFFERED);
        assert_eq!(of(|http, _| http.settings.window = Some(80_000)), (40_000, TCP_BUFFERED));
        assert_eq!(of(|http, _| http.settings.connection_window = Some(90_000)), (half, 45_000));
        assert_eq!(of(|_, connect| connect.unix = Some("/s".into())), (half, UNIX_BUFFERED));
        assert_eq!(of(|_, connect| connect.socket.rcvbuf = Some(8_000)), (half, 8_000));
        assert_eq!(of(|_, connect| connect.socket.rcvbuf = Some(16_000_000)), (half, RCVBUF_MAX.into()));
    }
}
