//! How the generator works: kernel interface, imitated tool, busy-polling and seed.

use std::path::PathBuf;

use onrush_plan::{Io, Spin};

use super::compat;
use super::draft::PlanDraft;
use super::flag::{Flag, flag, put};

const SEED: u64 = 1;

pub(super) const OPTIONS: &[Flag] = &[
    flag("--io NAME", |draft, value| {
        draft.internals.io = match value.utf8().and_then(|text| text.strip_prefix("sim:")) {
            Some(file) => Io::Sim(PathBuf::from(file)),
            None => value.choice(&[Io::Auto, Io::Uring, Io::Epoll])?,
        };
        Ok(())
    })
    .one_of(&["auto", "uring", "epoll"])
    .help("kernel interface: auto, uring or epoll (auto)")
    .reference(
        "Kernel interface: `uring`, `epoll`, or `auto` (default): io_uring if the kernel allows it (6.1 or later, \
         no filter such as Docker's), else epoll. `-v` prints the choice and the reason.",
        "onrush --io epoll http://127.0.0.1:8080/",
    ),
    // The name has taken effect before any option is read.
    flag("--compat NAME", |_, value| value.choice(&compat::IMITATED).map(drop))
        .one_of(&["wrk", "wrk-cmm", "wrk2"])
        .common()
        .single_run_only("an experiment cannot imitate other tools")
        .help("behave exactly like wrk, wrk-cmm or wrk2, as when\ncalled by that name")
        .reference(
            "Behaves exactly like `wrk`, `wrk-cmm` or `wrk2`, as a link of that name does, [see \
             below](#called-as-wrk). Anywhere on the command line.",
            "onrush --compat wrk -t2 -c100 http://127.0.0.1:8080/",
        ),
    flag("--spin WHEN", |draft, value| {
        put(&mut draft.internals.spin, value.choice(&[Spin::Auto, Spin::On, Spin::Off]))
    })
    .one_of(&["auto", "on", "off"])
    .help("busy-poll while at most 4 requests or connects are in\nflight: auto, on or off (auto)")
    .reference(
        "Lets threads with at most 4 requests and connects in flight, and [with a \
         rate](pacing.md#when-requests-are-sent) shortly before a request is due, busy-poll instead of blocking: \
         `on`, `off`, or `auto` (default), if there are enough processors. `-v` prints the decision.",
        "onrush --spin off -c1 -t1 http://127.0.0.1:8080/",
    ),
    flag("--seed N", |draft, value| {
        let seed = value.utf8().and_then(|text| text.parse().ok());
        draft.internals.seed = seed.ok_or_else(|| value.wrong(format_args!("not a number from 0 to {}", u64::MAX)))?;
        Ok(())
    })
    .help("seed of the random sequences, to repeat a run (1)")
    .reference("Seed of the random sequences; 1 by default.", "onrush --seed 7 http://127.0.0.1:8080/"),
];

/// The options on the generator itself.
#[derive(Debug)]
pub(super) struct InternalsDraft {
    pub io: Io,
    pub spin: Spin,
    pub seed: u64,
}

impl Default for InternalsDraft {
    fn default() -> Self {
        Self { io: Io::default(), spin: Spin::default(), seed: SEED }
    }
}

impl PlanDraft {
    /// True if the servers are simulated.
    pub(super) fn is_simulated(&self) -> bool {
        matches!(self.internals.io, Io::Sim(_))
    }
}
