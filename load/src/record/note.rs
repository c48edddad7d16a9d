//! A note, which qualifies a result: what happened, to what, why, and what to do next.

use serde::{Deserialize, Serialize};

/// One thing that the user should know about a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Note {
    /// What it is about.
    pub id: NoteId,
    /// How important it is.
    pub weight: Weight,
    /// The sentence, with an example in brackets; secrets are redacted. In a sum it begins with the name of its run.
    pub text: String,
    /// The sentence without its example, and the example, where they are printed on two lines after the run.
    #[serde(skip)]
    pub lines: Option<[String; 2]>,
    /// Whether it was said before the run, so that only files need it.
    #[serde(skip)]
    pub was_announced: bool,
}

/// How important a note is, most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// The result does not show what was asked for.
    Doubt,
    /// Something failed.
    Failure,
    /// Good to know.
    Hint,
}

/// What a note is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NoteId {
    /// The machine was suspended.
    Suspended,
    /// onrush itself was stalled.
    Stalled,
    /// Fewer connections were established than were asked for.
    FewerConnections,
    /// Connections were less busy than they should have been.
    Idle,
    /// More requests hang than the latencies can show.
    Hanging,
    /// The kernel made a buffer of connections smaller than was asked for.
    BufferCapped,
    /// Fewer requests were sent than were due.
    Behind,
    /// Requests were due while all connections were busy.
    Crowded,
    /// Many requests were sent late.
    Late,
    /// Requests were not sent because they would have been too late.
    Dropped,
    /// A percentile of the latency since requests were due is not known.
    Uncertain,
    /// The load went on after the end of the run, to learn how requests ended.
    RanOn,
    /// Requests were sent at the ends of slices.
    Sliced,
    /// A signal ended the run early.
    Interrupted,
    /// A signal came before anything was sent.
    NeverBegun,
    /// The target was unreachable for so long that the run was ended.
    Unreachable,
    /// The time was up before all requests had ended.
    TooFewRequests,
    /// The script ended threads before the run was over.
    ScriptEnded,
    /// The outcome of `--until`.
    Until,
    /// Some requests got no response.
    Lost,
    /// No request got a response.
    NoResponse,
    /// No request was sent.
    NothingSent,
    /// There were silences: no response for a while.
    Silences,
    /// The target was unavailable for some of the time.
    Unavailable,
    /// Something failed; one note for each row of the ledger except statuses.
    Failure,
    /// The only response was not 2xx.
    Status,
    /// Some responses were not 2xx.
    Statuses,
    /// All responses say that the port expects TLS.
    ExpectsTls,
    /// The control group of onrush was throttled.
    Throttled,
    /// The control group of the target was throttled.
    TargetThrottled,
    /// The rate fell during the run.
    Unsteady,
    /// The rate rose during the run.
    WarmingUp,
    /// The wall clock was stepped.
    ClockStep,
    /// One connection served far more requests than others.
    HotConnection,
    /// The hypervisor gave the machine's processors to others.
    Stolen,
    /// With a rate, slow responses make the 99th percentile.
    SlowResponses,
    /// The target did not read as fast as onrush sent.
    PeerWindow,
    /// The generator's send buffers were full.
    SendBuffer,
    /// An address refused connections before the run while another one worked.
    AddressLeftOut,
    /// Only the first of the requests that a script sends at once was sent.
    FirstOfBatch,
    /// Requests were in flight when measuring began.
    Carried,
    /// There were interim responses (1xx).
    Interim,
    /// A machine was lost in the run.
    MachineLost,
    /// A machine was the limit of its part.
    MachineLimit,
    /// The machines of the run differ.
    MachinesDiffer,
    /// A machine is far away.
    MachineFar,
    /// A machine measured at another time than the others.
    MachineLate,
    /// Latencies exceeded the histogram's range.
    Clamped,
    /// The script's `delay` returned something other than a pause.
    PausesUnread,
    /// The server closed connections while no request was due.
    IdleClosed,
    /// The log of requests lacks lines.
    LostLines,
    /// The script saw only the beginning of some responses.
    CutResponses,
    /// Many TLS handshakes resumed a session, which costs less than a full handshake.
    Resumed,
    /// The server allows fewer streams on a connection of HTTP/2 than were asked for.
    FewStreams,
    /// Servers ended connections of HTTP/2 with an error that no failure shows.
    ConnectionsEnded,
    /// No server of HTTP/2 allows any streams.
    NoStreams,
    /// The server's windows kept the bodies of requests back.
    UploadWindow,
    /// The windows asked for are smaller than the responses, so that the server may have waited.
    SmallWindow,
    /// Responses came before their requests had been sent whole, so that the rest was left out.
    Early,
    /// Servers of HTTP/2 returned requests, which were sent again.
    Returned,
    /// All requests shared one connection.
    OneConnection,
    /// Which versions of HTTP were spoken, where the server could choose.
    Spoken,
    /// Of which runs this is the sum.
    Sum,
    /// The runs of the sum have different plans.
    DifferentPlans,
    /// A gate that the sum does not have.
    NoGate,
    /// A gate that passed without a figure.
    NoFigure,
}

impl Note {
    /// The result does not show what was asked for.
    pub fn doubt(id: NoteId, text: impl Into<String>) -> Self {
        Self::new(id, Weight::Doubt, text)
    }

    /// Something failed.
    pub fn failure(id: NoteId, text: impl Into<String>) -> Self {
        Self::new(id, Weight::Failure, text)
    }

    /// Something good to know.
    pub fn hint(id: NoteId, text: impl Into<String>) -> Self {
        Self::new(id, Weight::Hint, text)
    }

    /// The note as files have it.
    pub fn written(&self) -> Self {
        Self { lines: None, was_announced: false, ..self.clone() }
    }

    /// A note of one sentence.
    pub fn new(id: NoteId, weight: Weight, text: impl Into<String>) -> Self {
        Self { id, weight, text: text.into(), lines: None, was_announced: false }
    }
}
