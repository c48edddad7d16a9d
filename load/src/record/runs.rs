//! Gathers the evidence of a sum: from its own latencies and counts, and for everything else from the facts about each of
//! its runs. Its sources have these, in one order, so a sum of sums is the sum of all their runs.

use onrush_stats::silences::{GAP_MIN_NS, common_gaps, union_of_gaps};
use onrush_stats::{Distribution, Gap};
use onrush_text::units::format_count;

use super::evidence::measured::{
    Calm, expected_per_s, figure, heard_s, is_unlikely, latency, lateness_p99_us, quiet_s, sent, silence,
};
use super::evidence::{
    Evidence, Generator, Latency, Listening, Load, Machine, MainFailure, Network, Places, Probe, Refusal, Silence,
    Stall, Target, Thirds, Unreadable,
};
use super::{Document, Source, Sources};
use crate::figures::silences::min_silence_ns;

/// The evidence of a sum, and what could not be observed; `None` and nothing if one of its runs has none. Takes the service latencies of all runs.
pub fn evidence(sum: &Document, values: &Distribution<u64>) -> (Option<Evidence>, Vec<String>) {
    let Some(runs) = sum.sources.as_ref().and_then(|sources| Runs::of(sources, sum.duration_s)) else {
        return (None, Vec::new());
    };
    let evidence = Evidence {
        generator: runs.generator(),
        load: runs.load(sum, values),
        latency: runs.latency(values),
        network: runs.network(|evidence| evidence.network.as_ref()),
        target: runs.target(),
        machine: Machine { suspended_s: sum.suspended_s, ..runs.machine() },
        probe: runs.probe(),
    };
    (Some(evidence), runs.unseen())
}

/// The runs of a sum.
struct Runs<'a> {
    sources: &'a Sources,
    each: Vec<Run<'a>>,
    /// How long at least one of them took place.
    lasted_s: f64,
    /// Whether all of them were on one machine, as far as that is known.
    are_on_one: Option<bool>,
}

/// One of them.
struct Run<'a> {
    source: &'a Source,
    evidence: &'a Evidence,
    /// When it took place, in nanoseconds since the first one began.
    at: Gap,
}

impl<'a> Runs<'a> {
    fn of(sources: &'a Sources, lasted_s: f64) -> Option<Self> {
        let run = |(source, at): (&'a Source, Gap)| Some(Run { source, evidence: source.evidence.as_ref()?, at });
        let each: Vec<Run<'a>> = sources.files.iter().zip(sources.times()).map(run).collect::<Option<_>>()?;
        let machines: Option<Vec<&String>> = sources.files.iter().map(|run| run.boot_id.as_ref()).collect();
        let are_on_one = machines.map(|machines| machines.windows(2).all(|pair| pair[0] == pair[1]));
        let are_on_one = if each.len() == 1 { Some(true) } else { are_on_one };
        (!each.is_empty() && lasted_s > 0.0).then_some(Self { sources, each, lasted_s, are_on_one })
    }

    fn are_on_one_machine(&self) -> bool {
        self.are_on_one == Some(true)
    }

    /// The average over time of a figure, from the runs that have it.
    fn mean(&self, of: impl Fn(&Evidence) -> Option<f64>) -> Option<f64> {
        average(self.each.iter().filter_map(|run| Some((of(run.evidence)?, run.source.duration_s))))
    }

    /// The sum of a figure over the runs at one time, as an average over all the time; `None` if one lacks it.
    fn together(&self, of: impl Fn(&Load) -> Option<f64>) -> Option<f64> {
        let parts = self.each.iter().map(|run| Some(of(&run.evidence.load)? * run.source.duration_s));
        Some(figure(parts.sum::<Option<f64>>()? / self.lasted_s))
    }

    /// The total of a time or a count, of which runs at the same time all saw the same; `None` if one lacks it.
    fn total(&self, of: impl Fn(&Evidence) -> Option<f64>) -> Option<f64> {
        let parts: Vec<f64> = self.each.iter().map(|run| of(run.evidence)).collect::<Option<_>>()?;
        let taken_s: f64 = self.each.iter().map(|run| run.source.duration_s).sum();
        match parts[..] {
            [only] => Some(only),
            _ => Some(figure(parts.iter().sum::<f64>() / taken_s * self.lasted_s)),
        }
    }

    /// The probes after them, as one.
    fn probe(&self) -> Option<Probe> {
        let probes = self.each.iter().map(|run| run.evidence.probe.as_ref());
        Probe::combine_runs(&probes.collect::<Vec<_>>(), self.sources.most(|_| 1) > 1)
    }

    /// The total of a count of each run.
    fn count(&self, of: impl Fn(&Load) -> u64) -> u64 {
        self.each.iter().map(|run| of(&run.evidence.load)).fold(0, u64::saturating_add)
    }

    /// The total of a count that all runs have.
    fn sum_of(&self, of: impl Fn(&Load) -> Option<u64>) -> Option<u64> {
        self.each
            .iter()
            .map(|run| of(&run.evidence.load))
            .try_fold(0, |sum: u64, count| Some(sum.saturating_add(count?)))
    }

    /// A figure that is the same in all of them.
    fn alike<T: PartialEq>(&self, of: impl Fn(&Load) -> Option<T>) -> Option<T> {
        let mut each = self.each.iter().map(|run| of(&run.evidence.load));
        let first = each.next()?;
        each.all(|other| other == first).then_some(first)?
    }

    fn generator(&self) -> Generator {
        let of = |run: &Source| run.evidence.as_ref().map_or(0, |evidence| evidence.generator.threads.len() as u64);
        let at_once = self.sources.most(of).max(1) as usize;
        let threads: Vec<_> = self.each.iter().flat_map(|run| &run.evidence.generator.threads).copied().collect();
        let cpus = self.each.iter().map(|run| run.evidence.generator.cpus);
        let cpus = cpus.collect::<Option<Vec<usize>>>().filter(|_| self.are_on_one_machine());
        Generator {
            cpus: cpus
                .and_then(|cpus| cpus.into_iter().max())
                .map(|cpus| cpus.saturating_mul(threads.len().max(at_once)) / at_once),
            threads,
            stopped: self.each.iter().map(|run| run.evidence.generator.stopped).fold(0, u64::saturating_add),
            stalled_s: self.total(|it| Some(it.generator.stalled_s)).unwrap_or_default(),
            stalls: self.each.iter().map(|run| run.evidence.generator.stalls).fold(0, u64::saturating_add),
            long_stalls: self.long_stalls(),
            throttled_s: self.total(|it| it.generator.throttled_s).filter(|_| self.are_on_one_machine()),
            thread_s: figure(self.each.iter().map(|run| run.evidence.generator.thread_s).sum()),
            beside_s: self.each.iter().map(|run| run.evidence.generator.beside_s).sum::<Option<f64>>().map(figure),
        }
    }

    /// The times in which one of them at least was stalled.
    fn long_stalls(&self) -> Vec<Stall> {
        let of = |run: &Run<'_>| {
            run.evidence.generator.long_stalls.iter().map(|it| run.gap(it.start_s, it.length_s)).collect::<Vec<_>>()
        };
        let all = self.each.iter().fold(Vec::new(), |all, run| union_of_gaps(&all, &of(run)));
        all.iter().map(Stall::of).collect()
    }

    /// What their connections were doing.
    fn places(&self) -> Places {
        let mean = |of: fn(&Places) -> f64| self.together(|load| Some(of(&load.places))).unwrap_or_default();
        Places {
            never_established: mean(|it| it.never_established),
            waiting: mean(|it| it.waiting),
            connecting: mean(|it| it.connecting),
            pausing: mean(|it| it.pausing),
            leaving: mean(|it| it.leaving),
            done: mean(|it| it.done),
        }
    }

    fn load(&self, sum: &Document, values: &Distribution<u64>) -> Load {
        let open_loop = sum.open_loop.as_ref();
        let lateness = sum.result.sums.totals.open_loop.as_deref().filter(|_| open_loop.is_some());
        let lateness = lateness.map(|open_loop| &open_loop.lateness);
        let of = |count: Option<u64>| count.unwrap_or_default();
        let requests = &sum.requests;
        let (due, missed) = (of(requests.due) + of(requests.due_before), of(requests.dropped) + of(requests.unsent));
        let silences = self.silences(min_silence_ns(values, open_loop.is_some()), open_loop.map(|_| sum.rate_per_s));
        let asked_per_s = self.together(|load| load.asked_per_s);
        let is_heard = open_loop.is_none() && requests.completed > 0;
        // What else failed where nothing could be read has the same reason.
        let beside_unreadable = self.count(|load| {
            load.unreadable.as_ref().map_or(0, |unreadable| load.read_errors.saturating_sub(unreadable.requests))
        });
        let ended = sum.errors.read.saturating_add(sum.errors.write).saturating_add(requests.abandoned);
        let in_flight = requests.started.saturating_add(requests.carried);
        let statuses = sum.status.iter().map(|(status, count)| (*status, *count));
        Load {
            elapsed_s: sum.duration_s,
            connections: self.sources.most(|run| run.evidence.as_ref().map_or(0, |it| it.load.connections)),
            in_flight_max: Some(self.sources.most(|run| {
                run.evidence.as_ref().and_then(|evidence| evidence.load.in_flight_max).unwrap_or_default()
            }))
            .filter(|most| *most > 0),
            room: self.alike(|load| load.room),
            in_flight: self.together(|load| Some(load.in_flight)).unwrap_or_default(),
            in_flight_of_all: (self.each.len() > 1)
                .then(|| figure(self.each.iter().map(|run| run.evidence.load.all_in_flight()).sum())),
            idle: self.idle(),
            open: self.together(|load| Some(load.open)).unwrap_or_default(),
            missing: self.together(|load| Some(load.missing)).unwrap_or_default(),
            places: self.places(),
            streams_allowed: self.each.iter().filter_map(|run| run.evidence.load.streams_allowed).min(),
            completed: requests.completed,
            rate_per_s: figure(sum.rate_per_s),
            asked_per_s,
            sent: open_loop.map(|_| sent(due, missed)),
            lateness_p99_us: lateness.map(lateness_p99_us),
            without_port: self.count(|load| load.without_port),
            connect_errors: self.count(|load| load.connect_errors),
            read_errors: sum.errors.read,
            failed: Some(self.count(Load::failed_requests)),
            failed_connections: Some(self.count(Load::failed_connections)),
            main_failure: MainFailure::of(sum.ledger.iter().map(|row| {
                let (count, why, advice) = (row.count, row.cause.clone(), row.advice.clone());
                (row.phase.clone(), row.ours, MainFailure { count, why, advice })
            })),
            unreadable: Unreadable::of(
                self.each.iter().filter_map(|run| run.evidence.load.unreadable.clone()),
                ended.saturating_sub(beside_unreadable),
                self.count(|load| load.hanging),
                requests.completed,
            ),
            timeouts: sum.errors.timeout,
            abandoned: sum.errors.abandoned,
            expected: sum.plan.expected_status().cloned(),
            refused: sum.errors.status,
            refusal: Refusal::of(statuses, sum.plan.expected_status()),
            failed_checks: sum.errors.check,
            hanging: self.count(|load| load.hanging),
            left: self.sum_of(|load| load.left),
            overdue: self.each.iter().filter_map(|run| run.evidence.load.overdue).reduce(u64::saturating_add),
            overrun_s: self.each.iter().filter_map(|run| run.evidence.load.overrun_s).reduce(f64::max),
            usually_left: self.sum_of(|load| load.usually_left),
            crowded: self.each.iter().filter_map(|run| run.evidence.load.crowded).reduce(f64::max),
            growth: self.each.iter().filter_map(|run| run.evidence.load.growth).reduce(f64::max),
            silent_s: if is_heard { heard_s(&silences) } else { 0.0 },
            quiet_s: quiet_s(&silences, asked_per_s.map(|asked| expected_per_s(sum.rate_per_s, asked, in_flight))),
            is_mute: !self.each.is_empty() && self.each.iter().all(|run| run.evidence.load.is_mute),
            silent_at_end_s: self.silent_at_end_s(),
            failed_at_end: self.each.iter().any(|run| run.evidence.load.failed_at_end),
            silences,
            hottest: self.each.iter().filter_map(|run| run.evidence.load.hottest).reduce(f64::max),
            backlog: self.only().and_then(|run| run.load.backlog),
            dispersion: self.only().and_then(|run| run.load.dispersion),
            thirds: self.thirds(),
        }
    }

    /// The share in the time of all open connections.
    fn idle(&self) -> Option<f64> {
        let of = |run: &Run<'_>| {
            let Load { idle, open, .. } = run.evidence.load;
            Some((idle?, open * run.source.duration_s))
        };
        let parts: Option<Vec<(f64, f64)>> = self.each.iter().map(of).collect();
        average(parts?.into_iter()).map(figure)
    }

    /// The times of at least this length, in nanoseconds, in which none of the runs at that time got a response.
    fn silences(&self, least_ns: u64, per_s: Option<f64>) -> Vec<Silence> {
        let silent = self.each.iter().fold(vec![Gap::ALL], |silent, run| common_gaps(&silent, &run.without_response()));
        let times: Vec<Gap> = self.each.iter().map(|run| run.at).collect();
        let silent = common_gaps(&silent, &union_of_gaps(&times, &[]));
        let silences = silent.into_iter().filter_map(|gap| {
            let meets = |run: &&Run<'_>| run.at.from_ns < gap.until_ns && gap.from_ns < run.at.until_ns;
            let deaf_ns = self.each.iter().filter(meets).map(|run| run.deaf_ns(gap)).fold(0, u64::saturating_add);
            let heard_ns = gap.length_ns().saturating_sub(deaf_ns);
            (heard_ns >= least_ns || is_unlikely(gap, heard_ns, per_s)).then(|| silence(gap, heard_ns))
        });
        silences.collect()
    }

    /// How long no run had had a response when the last one ended, without the time in which there was no run.
    fn silent_at_end_s(&self) -> f64 {
        let heard_ns = |run: &Run<'_>| run.at.until_ns.saturating_sub(nanos(run.evidence.load.silent_at_end_s));
        let last_ns = self.each.iter().map(heard_ns).max().unwrap_or(0);
        let times: Vec<Gap> = self.each.iter().map(|run| run.at).collect();
        let after =
            union_of_gaps(&times, &[]).into_iter().map(|time| time.until_ns.saturating_sub(time.from_ns.max(last_ns)));
        let after_ns: u64 = after.sum();
        if after_ns >= GAP_MIN_NS { figure(after_ns as f64 / 1e9) } else { 0.0 }
    }

    /// The evidence of a run that is alone: of several, one cannot say how many requests were in flight together at a moment.
    fn only(&self) -> Option<&Evidence> {
        if let [run] = &self.each[..] { Some(run.evidence) } else { None }
    }

    fn thirds(&self) -> Option<Thirds> {
        let thirds: Option<Vec<Thirds>> = self.each.iter().map(|run| run.evidence.load.thirds).collect();
        let thirds = thirds.filter(|_| self.sources.is_at_one_time())?;
        let total = |of: fn(&Thirds) -> f64| thirds.iter().map(of).sum::<f64>();
        Some(Thirds {
            first_per_s: figure(total(|it| it.first_per_s)),
            last_per_s: figure(total(|it| it.last_per_s)),
            error_per_s: figure(total(|it| it.error_per_s.powi(2)).sqrt()),
        })
    }

    fn latency(&self, values: &Distribution<u64>) -> Option<Latency> {
        let parts: Vec<&Latency> = self.each.iter().filter_map(|run| run.evidence.latency.as_ref()).collect();
        let calm = parts.iter().filter_map(|latency| Some((latency.calm_us?, latency.calm)));
        let count = calm.clone().map(|(_, count)| count).sum();
        let mean_us = average(calm.map(|(mean_us, count)| (mean_us, count as f64)));
        let in_flight = self.only().and_then(|run| run.latency?.calm_in_flight);
        let calm = mean_us.map(|mean_us| Calm { requests: count, mean_ns: mean_us * 1e3, in_flight });
        latency(values, calm.as_ref())
    }

    /// One end of connections; shares are averages over the readings.
    fn network(&self, of: impl Fn(&Evidence) -> Option<&Network>) -> Option<Network> {
        let parts: Vec<&Network> = self.each.iter().filter_map(|run| of(run.evidence)).collect();
        let mean = |of: fn(&Network) -> Option<f64>| {
            average(parts.iter().filter_map(|part| Some((of(part)?, part.readings as f64))))
        };
        let total = |of: fn(&Network) -> Option<u64>| {
            parts.iter().try_fold(0, |sum: u64, part| Some(sum.saturating_add(of(part)?)))
        };
        Some(Network {
            readings: parts.iter().map(|part| part.readings).fold(0, u64::saturating_add),
            rtt_us: mean(|it| Some(it.rtt_us))?,
            rtt_min_us: parts.iter().filter_map(|part| part.rtt_min_us).reduce(f64::min),
            retransmitted: mean(|it| Some(it.retransmitted))?,
            needless: mean(|it| it.needless),
            out_of_order: mean(|it| it.out_of_order),
            out_of_order_segments: total(|it| it.out_of_order_segments),
            lost: total(|it| it.lost),
            lost_per_request: mean(|it| Some(it.lost_per_request))?,
            busy: mean(|it| it.busy),
            window_limited: mean(|it| it.window_limited),
            buffer_limited: mean(|it| it.buffer_limited),
            half_answered: mean(|it| it.half_answered),
        })
    }

    /// The target, if all runs saw the same on the same machine.
    fn target(&self) -> Option<Target> {
        let all: Option<Vec<&Target>> = self.each.iter().map(|run| run.evidence.target.as_ref()).collect();
        let all = all.filter(|_| self.are_on_one_machine() && !self.has_several_targets())?;
        let of = |figure: fn(&Target) -> Option<f64>| move |it: &Evidence| figure(it.target.as_ref()?);
        let last = self.each.iter().max_by_key(|run| run.at.until_ns)?;
        let listening = all.iter().filter_map(|target| target.listening).max_by_key(|it| it.waiting_max);
        let overflows = self.total(of(|it| Some(it.listening?.overflows? as f64)));
        Some(Target {
            name: all.first()?.name.clone(),
            processes: all.iter().map(|target| target.processes).max()?,
            ended: last.evidence.target.as_ref()?.ended,
            cpus_used: self.mean(of(|it| Some(it.cpus_used)))?,
            cpus_allowed: self.mean(of(|it| Some(it.cpus_allowed)))?,
            busiest_thread: self.mean(of(|it| Some(it.busiest_thread)))?,
            queued: self.mean(of(|it| it.queued)),
            throttled_s: self.total(of(|it| it.throttled_s)),
            listening: listening
                .map(|it| Listening { overflows: overflows.map(|overflows| overflows.round() as u64), ..it }),
            network: self.network(|it| it.target.as_ref()?.network.as_ref()),
        })
    }

    fn has_several_targets(&self) -> bool {
        let mut names = self.each.iter().filter_map(|run| Some(&run.evidence.target.as_ref()?.name));
        names.next().is_some_and(|first| names.any(|name| name != first))
    }

    fn machine(&self) -> Machine {
        if !self.are_on_one_machine() {
            return Machine::default();
        }
        let steps = self.each.iter().filter_map(|run| run.evidence.machine.clock_step_s);
        Machine {
            stolen: self.mean(|it| it.machine.stolen),
            clock_step_s: steps.reduce(|one, other| if other.abs() > one.abs() { other } else { one }),
            suspended_s: 0.0,
        }
    }

    /// What could not be observed in all runs or in some of them, and what cannot be added up.
    fn unseen(&self) -> Vec<String> {
        let mut unseen: Vec<(&str, u64)> = Vec::new();
        for what in self.each.iter().flat_map(|run| &run.source.unseen) {
            match unseen.iter_mut().find(|(known, _)| known == what) {
                Some((_, times)) => *times += 1,
                None => unseen.push((what, 1)),
            }
        }
        let runs = self.each.len() as u64;
        let in_some = |(what, times)| match times {
            all if all == runs => String::from(what),
            some => format!("in {some} of {}: {what}", format_count(runs, "run")),
        };
        let of_machines = match self.are_on_one {
            Some(true) if self.has_several_targets() => Some("the target: it was not the same program in all runs"),
            Some(true) => None,
            Some(false) => Some("the machine, its processors and a target on it: the runs were on several machines"),
            None => Some("the machine, its processors and a target on it: the runs may have been on several machines"),
        };
        unseen.into_iter().map(in_some).chain(of_machines.map(str::to_owned)).collect()
    }
}

impl Run<'_> {
    /// The times in which it got no response: its silences, before it began, and after it ended.
    fn without_response(&self) -> Vec<Gap> {
        let mut gaps: Vec<Gap> =
            self.evidence.load.silences.iter().map(|silence| self.gap(silence.start_s, silence.length_s)).collect();
        match gaps.first_mut().filter(|first| first.from_ns <= self.at.from_ns) {
            Some(first) => first.from_ns = 0,
            None => gaps.insert(0, Gap { from_ns: 0, until_ns: self.at.from_ns }),
        }
        match gaps.last_mut().filter(|last| last.until_ns >= self.at.until_ns) {
            Some(last) => last.until_ns = u64::MAX,
            None => gaps.push(Gap { from_ns: self.at.until_ns, until_ns: u64::MAX }),
        }
        gaps
    }

    /// For how long of a gap it may not have noticed a response.
    fn deaf_ns(&self, gap: Gap) -> u64 {
        let during =
            |silence: &&Silence| !common_gaps(&[self.gap(silence.start_s, silence.length_s)], &[gap]).is_empty();
        let during = self.evidence.load.silences.iter().filter(during);
        during.map(|silence| nanos(silence.length_s - silence.heard_s)).fold(0, u64::saturating_add)
    }

    /// A time of it, in nanoseconds since the first run began.
    fn gap(&self, start_s: f64, length_s: f64) -> Gap {
        let from_ns = self.at.from_ns.saturating_add(nanos(start_s));
        Gap { from_ns, until_ns: from_ns.saturating_add(nanos(length_s)) }
    }
}

/// The average of figures, each with its weight; `None`: there are none.
fn average(mut parts: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let (first, mut total_weight) = parts.next()?;
    let (mut total, mut is_only) = (first * total_weight, true);
    for (figure, weight) in parts {
        (total, total_weight, is_only) = (total + figure * weight, total_weight + weight, false);
    }
    Some(if is_only || total_weight <= 0.0 { first } else { total / total_weight })
}

/// Seconds as whole nanoseconds.
fn nanos(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

#[cfg(test)]
mod tests;
