//! Draws a run and a hostile network from a seed. Most runs have few faults, so that each fault occurs in an otherwise
//! healthy run.

use onrush_engine::backend::sim::Scenario;
use onrush_engine::backend::sim::scenario::{ConnectionFault, Fault, Mischief, Span};
use onrush_plan::Random;
use onrush_plan::list::ListOrder;
use onrush_plan::schedule::Arrivals;

use super::case::{Case, CaseOptions, Lua};
use super::pace::{Pace, PaceStage};

/// Approximate maximum number of requests in a run with fast servers.
const REQUESTS: u64 = 1_000;
/// Approximate maximum number of requests if a script sends batches.
const BATCHED: u64 = 4 * REQUESTS;
/// Maximum number of requests in a batch sent ahead.
const BATCH_AHEAD: u64 = 100;
/// Approximate size of a request head, and maximum number of network windows per request: each window causes a
/// completion.
const HEAD_BYTES: usize = 50;
const WINDOWS: usize = 50;
/// Responses that end by themselves and leave the connection open.
const WHOLE: [&str; 7] = [
    "HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, World!",
    "HTTP/1.1 204 No Content\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nHello\r\n7;x=y\r\n, World\r\n0\r\nX: y\r\n\r\n",
    "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 2\r\n\r\n..",
    "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n!",
    "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\n1.0",
];
/// Responses after which the connection ends or should end.
const LAST: [&str; 3] = [
    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbye!",
    "HTTP/1.1 200 OK\r\n\r\nup to the end",
    "HTTP/1.0 200 OK\r\n\r\n",
];
/// Bytes that a server should not send, or not at that point.
const ODD: [&str; 14] = [
    "nonsense\r\n\r\n",
    "\r\n\r\n",
    "",
    "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n\u{1}\u{2}",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n",
    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nokand more",
    "HTTP/2.0 200 OK\r\n\r\n",
    "\u{15}\u{3}\u{1}\u{0}\u{2}",
];

/// Draws the run that belongs to a seed.
pub fn draw_case(seed: u64) -> Case {
    let mut draw = Draw(Random::new(seed));
    // Combines times of very different magnitude.
    let as_wrk = draw.one_in(5);
    let latency_us = draw.draw_magnitude(if as_wrk { 5_000 } else { 50 }, 2_000_000);
    // With wrk's options, the shortest run lasts a second.
    let connections = if draw.one_in(8) && !as_wrk { draw.draw_between(50, 200) } else { draw.draw_between(1, 20) };
    let length_ms = (draw.draw_between(20, REQUESTS) * latency_us / connections / 1_000).clamp(2, 100_000);
    // wrk accepts only whole seconds.
    let length_ms = if as_wrk { length_ms.next_multiple_of(1_000) } else { length_ms };
    let batches = 1 + length_ms * 1_000 / latency_us * connections;
    let mut script = draw.one_in(4).then(|| draw.draw_script(length_ms, (BATCHED / batches).clamp(1, 32)));
    let mut scenario = draw.draw_scenario(latency_us, length_ms);
    let mut options = draw.draw_options(seed, as_wrk, connections, length_ms);
    if scenario.window > 0 {
        scenario.window = scenario.window.max((HEAD_BYTES + options.body_bytes) / WINDOWS);
    }
    let closes_early = !scenario.connection_fault.is_empty();
    if closes_early && script.as_ref().is_some_and(|script| !script.delays_ms.is_empty()) {
        // A server that ends every connection during the first pause gets no request at all, so the run would never
        // end.
        options.duration_ms = Some(length_ms);
    }
    if draw.one_in(3) {
        options.pace = Some(draw.draw_pace(length_ms));
        // The run must end however low the rate is.
        options.duration_ms = Some(length_ms);
    }
    if draw.one_in(6) {
        options.levels = draw.draw_levels(length_ms, connections);
    } else if options.pace.is_some() && draw.one_in(2) {
        options.max_inflight = Some(connections + draw.draw_magnitude(1, 8 * connections));
    }
    // A run of `-n` might wait for connections that send nothing more.
    if options.levels.is_empty() && options.pace.is_none() && options.requests.is_none() && draw.one_in(4) {
        options.limits = draw.draw_limits(length_ms, connections);
    }
    if script.is_none() && !as_wrk && draw.one_in(3) {
        (options.listed, options.order) = (draw.draw_between(1, 20), draw.pick(&ListOrder::ALL));
    }
    options.templates = script.is_none() && !as_wrk && options.listed == 0 && draw.one_in(3);
    options.checks = !as_wrk && draw.one_in(4);
    options.limit_ms = (options.pace.is_some() && draw.one_in(3)).then(|| draw.draw_magnitude(1, length_ms));
    let is_plain = script.is_none() && options.listed == 0 && !options.templates;
    if let Some(pace) = options.pace.as_ref().filter(|_| is_plain && draw.one_in(2)) {
        script = Some(Lua { batches: draw.draw_batches_ahead(pace, length_ms), ..Lua::default() });
    }
    Case { options, scenario, script }
}

struct Draw(Random);

impl Draw {
    fn draw_between(&mut self, least: u64, most: u64) -> u64 {
        least + self.0.below(most - least + 1)
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.0.below(many) == 0
    }

    /// Draws a number with a uniform order of magnitude.
    fn draw_magnitude(&mut self, least: u64, most: u64) -> u64 {
        let octaves = (most / least.max(1)).max(1).ilog2() + 1;
        let low = least << self.0.below(u64::from(octaves));
        self.draw_between(low, (2 * low).min(most).max(low))
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.0.below(from.len() as u64) as usize]
    }

    fn draw_options(&mut self, seed: u64, as_wrk: bool, connections: u64, length_ms: u64) -> CaseOptions {
        let by_requests = !as_wrk && self.one_in(3);
        let is_native = |yes: bool| yes && !as_wrk;
        // A connection that is given up makes room for the next at once, forever.
        let patience_ms = length_ms * connections / (3 * REQUESTS);
        CaseOptions {
            as_wrk,
            pace: None,
            threads: self.pick(&[1, 1, 1, 2, 3]).min(connections as u32),
            connections: connections as u32,
            levels: Vec::new(),
            limits: Vec::new(),
            max_inflight: None,
            duration_ms: (!by_requests || self.one_in(4)).then_some(length_ms),
            requests: by_requests.then(|| self.draw_magnitude(1, REQUESTS)),
            warmup_ms: is_native(self.one_in(4)).then(|| self.draw_between(1, length_ms)),
            timeout_ms: self.one_in(2).then(|| self.draw_magnitude(1, 2 * length_ms)),
            // Each request without a response would hold up a run of `-n` for half a minute.
            give_up_ms: (by_requests || is_native(self.one_in(2))).then(|| {
                self.draw_magnitude(1, if by_requests { length_ms.div_ceil(4) } else { 2 * length_ms }).max(patience_ms)
            }),
            per_connection: is_native(self.one_in(5)).then(|| self.draw_magnitude(1, 64)),
            body_bytes: if is_native(self.one_in(5)) { self.draw_magnitude(1, 200) as usize } else { 0 },
            is_head: is_native(self.one_in(12)),
            phases: is_native(self.one_in(3)),
            has_choice: self.one_in(6),
            seed,
            ..CaseOptions::default()
        }
    }

    /// Draws the pace of a run of this length.
    fn draw_pace(&mut self, length_ms: u64) -> Pace {
        let per_minute = |draw: &mut Self| (draw.draw_magnitude(1, 2 * REQUESTS) * 60_000 / length_ms).max(1);
        let stages = if self.one_in(3) { self.draw_between(1, 4) } else { 0 };
        let stage = |draw: &mut Self| {
            let rate = |draw: &mut Self| if draw.one_in(4) { 0 } else { per_minute(draw) };
            let from = rate(draw);
            let to = if draw.one_in(2) { from } else { rate(draw) };
            PaceStage { length_ms: (draw.draw_between(1, length_ms) / stages).max(1), from, to }
        };
        let mut stages: Vec<PaceStage> = (0..stages).map(|_| stage(self)).collect();
        if let Some(last) = stages.last_mut() {
            // At least one request must be due.
            last.to = last.to.max(1);
        }
        Pace {
            per_minute: per_minute(self),
            stages,
            arrivals: match self.0.below(4) {
                0 => Arrivals::Poisson,
                1 => Arrivals::Burst(self.draw_magnitude(1, 64).try_into().expect("it is at least 1")),
                _ => Arrivals::Uniform,
            },
            catch_up_tenths: self.one_in(3).then(|| self.draw_between(10, 40)),
            max_late_ms: self.one_in(3).then(|| self.draw_magnitude(1, length_ms)),
            send_slice_us: self.one_in(3).then(|| self.draw_magnitude(1, 1_000 * length_ms.min(1_000))),
        }
    }

    /// Draws batches whose requests are sent up to a quarter of the run before they are due.
    fn draw_batches_ahead(&mut self, pace: &Pace, length_ms: u64) -> Vec<u32> {
        let rates = pace.stages.iter().flat_map(|stage| [stage.from, stage.to]).max();
        let most = rates.unwrap_or(pace.per_minute) * length_ms / 4 / 60_000;
        (0..self.draw_between(1, 3)).map(|_| self.draw_between(1, most.clamp(1, BATCH_AHEAD)) as u32).collect()
    }

    /// Draws limits on the requests in flight, which may end before the run.
    fn draw_limits(&mut self, length_ms: u64, connections: u64) -> Vec<(u64, u32)> {
        let count = self.draw_between(1, 8);
        (0..count)
            .map(|_| (self.draw_between(1, length_ms.div_ceil(count)), self.draw_between(0, connections) as u32))
            .collect()
    }

    /// Draws stages of the number of connections: at most as many as in the first stage.
    fn draw_levels(&mut self, length_ms: u64, connections: u64) -> Vec<PaceStage> {
        let count = self.draw_between(1, 4);
        let stage = |draw: &mut Self| {
            let number = |draw: &mut Self| if draw.one_in(4) { 0 } else { draw.draw_between(0, connections) };
            let from = number(draw);
            let to = if draw.one_in(3) { from } else { number(draw) };
            PaceStage { length_ms: (draw.draw_between(1, length_ms) / count).max(1), from, to }
        };
        let mut levels: Vec<PaceStage> = (0..count).map(|_| stage(self)).collect();
        *(if self.one_in(2) { &mut levels[0].from } else { &mut levels[0].to }) = connections;
        levels
    }

    fn draw_script(&mut self, length_ms: u64, batch_max: u64) -> Lua {
        let mut lua = Lua::default();
        if self.one_in(2) {
            lua.batches = (0..self.draw_between(1, 4)).map(|_| self.draw_magnitude(1, batch_max) as u32).collect();
        }
        if self.one_in(3) {
            lua.delays_ms = (0..self.draw_between(1, 3)).map(|_| self.draw_between(0, length_ms / 8)).collect();
        }
        lua.response = self.one_in(2).then(|| self.draw_between(1, 3) as usize);
        lua.stops_at = (lua.response.is_some() && self.one_in(4)).then(|| self.draw_magnitude(1, 200));
        // The function is called twice before the run.
        lua.fails_at = self.one_in(8).then(|| self.draw_magnitude(4, 200));
        lua
    }

    fn draw_scenario(&mut self, latency_us: u64, length_ms: u64) -> Scenario {
        let mut scenario = Scenario {
            connect_us: if self.one_in(3) { 0.0 } else { self.draw_magnitude(1, latency_us) as f64 },
            latency_us: latency_us as f64,
            jitter_us: if self.one_in(2) { 0.0 } else { self.draw_magnitude(1, 4 * latency_us) as f64 },
            answer: self.pick(&WHOLE).to_owned(),
            ..Scenario::default()
        };
        if self.one_in(6) {
            scenario.answer = self.pick(&LAST).to_owned();
            scenario.close = !self.one_in(4);
        } else if self.one_in(8) {
            // Long enough to be discarded by the kernel.
            let length = self.draw_magnitude(1_000, 100_000) as usize;
            scenario.answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{}", "x".repeat(length));
        }
        // Pieces and intervals sized so that other things happen during a response.
        if self.one_in(3) {
            scenario.split = self.draw_magnitude(1, 60).max(scenario.answer.len() as u64 / 20) as usize;
            scenario.split_pause_us = self.draw_magnitude(1, latency_us) as f64 - 1.0;
        }
        if self.one_in(3) {
            scenario.window = self.draw_magnitude(1, 200) as usize;
            scenario.window_pause_us = self.draw_magnitude(1, latency_us) as f64;
        }
        scenario.uneven = self.one_in(2);
        if self.one_in(6) {
            scenario.ports = self.draw_between(1, 20) as usize;
        }
        if self.one_in(6) {
            scenario.idle_us = self.draw_magnitude(1, 8 * latency_us) as f64;
        }
        if self.one_in(8) {
            scenario.listens = [self.pick(&["127.0.0.1", "::1"]).parse().expect("an address")].into();
        }
        scenario.stall = self.draw_spans(4, length_ms);
        scenario.refuse = self.draw_spans(4, length_ms);
        scenario.refuse_errno = self.pick(&[111, 111, 104, 110, 113, 24, 99]);
        scenario.backlog = self.draw_spans(5, length_ms);
        scenario.generator_stall = self.draw_spans(5, length_ms);
        // The test distinguishes stalled from working threads by real processor time, which must stay far below this.
        scenario.generator_stall.iter_mut().for_each(|span| span.for_s += 2.0);
        while scenario.fault.len() < 4 && self.one_in(2) {
            let after_bytes = self.draw_between(0, 60) as usize;
            let fault = Fault { every: self.draw_magnitude(1, 300), what: self.draw_mischief(), after_bytes };
            scenario.fault.push(fault);
        }
        while scenario.connection_fault.len() < 3 && self.one_in(3) {
            let after_bytes = if self.one_in(2) { 0 } else { self.draw_magnitude(1, 400) as usize };
            let after_us = if self.one_in(2) { 0.0 } else { self.draw_magnitude(1, 4 * latency_us) as f64 };
            let fault = ConnectionFault {
                every: self.draw_magnitude(1, 20),
                what: self.draw_mischief(),
                after_bytes,
                after_us,
            };
            scenario.connection_fault.push(fault);
            // A connection answered before it sent a request must not send far more often than others.
            scenario.connect_us = scenario.connect_us.max(latency_us as f64 / 20.0);
        }
        scenario
    }

    fn draw_mischief(&mut self) -> Mischief {
        match self.0.below(6) {
            0 => Mischief::Reset,
            1 => Mischief::Close,
            2 => Mischief::Hang,
            3 => Mischief::Early(self.draw_odd_bytes()),
            _ => Mischief::Answer(self.draw_odd_bytes()),
        }
    }

    fn draw_odd_bytes(&mut self) -> String {
        let text = self.pick(&ODD);
        match self.0.below(4) {
            0 => text.repeat(self.draw_magnitude(1, 16) as usize),
            1 => format!("{text}{}", self.pick(&WHOLE)),
            2 => format!("{}{text}", self.pick(&WHOLE)),
            _ => text.to_owned(),
        }
    }

    /// Draws time spans within a run of this length, in one of `one_in` runs.
    fn draw_spans(&mut self, one_in: u64, length_ms: u64) -> Vec<Span> {
        if !self.one_in(one_in) {
            return Vec::new();
        }
        let span = |draw: &mut Self| {
            let (from_ms, for_ms) = (draw.draw_between(0, length_ms), draw.draw_magnitude(1, length_ms.max(2)));
            Span { from_s: from_ms as f64 / 1e3, for_s: for_ms as f64 / 1e3 }
        };
        (0..self.draw_between(1, 3)).map(|_| span(self)).collect()
    }
}
