//! Jobs over time: computing and communicating at max-min fair rates, from event to event.
//!
//! An iteration of a job computes and communicates; the part of its bytes that overlaps goes while it
//! computes, the rest after. Between two events (a stream ends, a job begins or goes on) all rates stand;
//! at an event only the streams that share a link with those that came or went, directly or through others,
//! get new rates. Time is in ns.

use super::fill::{Filler, Share, Stream, Use};
use super::order::At;
use super::transport::{Climb, Recovery, Transport};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A job to simulate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// When it begins, ns.
    pub begins_ns: u64,
    /// Iterations.
    pub iterations: u64,
    /// Time that an iteration computes, ns.
    pub compute_ns: u64,
    /// Share of the bytes that may go while it computes, in millionths.
    pub overlap_ppm: u32,
    /// What an iteration sends.
    pub streams: Vec<Stream>,
}

/// How a job fared.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// When its last iteration ended, ns.
    pub ends_ns: f64,
    /// How long it would have taken alone on the fabric, ns.
    pub alone_ns: f64,
    /// How long it took, ns.
    pub took_ns: f64,
}

impl Outcome {
    /// Time taken over time alone; 1 for a job without anything to do.
    #[must_use]
    pub fn slow_down(&self) -> f64 {
        if self.alone_ns > 0.0 {
            self.took_ns / self.alone_ns
        } else {
            1.0
        }
    }
}

/// Simulates `runs` on links of these rates (bits/s by directed link), shared max-min fair; one outcome per run.
/// `progress` is told after each iteration of any job how many of all have ended.
pub fn simulate(capacity_bps: &[u64], runs: &[Run], progress: impl FnMut(u64)) -> Vec<Outcome> {
    let fabric = Fabric {
        capacity_bps,
        from_nics: &[],
        echoes: &[],
        transport: Transport::default(),
    };
    simulate_on(&fabric, runs, progress)
}

/// Links, and the senders on them.
#[derive(Clone, Copy, Debug)]
pub struct Fabric<'a> {
    /// Bits/s by directed link.
    pub capacity_bps: &'a [u64],
    /// By directed link, whether a NIC sends on it: nothing marks packets that wait there. Missing ones are
    /// switches'.
    pub from_nics: &'a [bool],
    /// By stream of all runs, the directed links that its acknowledgements cross; missing ones cross none.
    pub echoes: &'a [Vec<u32>],
    /// How senders behave.
    pub transport: Transport,
}

/// As [`simulate`], for senders that behave as `fabric` says.
pub fn simulate_on(
    fabric: &Fabric<'_>,
    runs: &[Run],
    mut progress: impl FnMut(u64),
) -> Vec<Outcome> {
    let mut world = World::new(fabric, runs);
    let mut outcomes: Vec<Outcome> = runs
        .iter()
        .map(|run| Outcome {
            alone_ns: alone(&mut world.filler, run),
            ..Outcome::default()
        })
        .collect();
    let mut ended = 0;
    while let Some(job) = world.step() {
        let state = &world.jobs[job as usize];
        ended += 1;
        progress(ended);
        if state.iterations_left == 0 {
            let outcome = &mut outcomes[job as usize];
            outcome.ends_ns = world.now;
            outcome.took_ns = world.now - runs[job as usize].begins_ns as f64;
        }
    }
    outcomes
}

/// Time of all iterations without any other job, ns.
fn alone(filler: &mut Filler, run: &Run) -> f64 {
    let streams: Vec<&Stream> = run.streams.iter().collect();
    let rates = filler.fill(&streams);
    let longest = streams
        .iter()
        .zip(rates)
        .map(|(stream, rate)| stream.bytes as f64 * 8e9 / rate)
        .fold(0.0, f64::max);
    let overlap = f64::from(run.overlap_ppm) / 1e6;
    let compute = run.compute_ns as f64;
    let iteration = compute.max(longest * overlap) + longest * (1.0 - overlap);
    iteration * run.iterations as f64
}

/// How much slower each job's communication is when all of `jobs` communicate at once than it is for a job
/// whose flows meet no others but its own: a snapshot, without time.
#[must_use]
pub fn slow_downs(capacity_bps: &[u64], jobs: &[Vec<Stream>]) -> Vec<f64> {
    let mut filler = Filler::new(capacity_bps);
    let longest = |streams: &[&Stream], rates: &[f64]| {
        let times = streams.iter().zip(rates).map(|(s, r)| s.bytes as f64 / r);
        times.fold(0.0, f64::max)
    };
    let all: Vec<&Stream> = jobs.iter().flatten().collect();
    let together = filler.fill(&all);
    let mut first = 0;
    jobs.iter()
        .map(|job| {
            let own: Vec<&Stream> = job.iter().collect();
            let with_others = longest(&own, &together[first..first + own.len()]);
            first += own.len();
            let rates = filler.fill(&own);
            let alone = longest(&own, &rates);
            if alone > 0.0 {
                with_others / alone
            } else {
                1.0
            }
        })
        .collect()
}

/// In the order in which those of one time happen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The job begins, or has computed.
    Job(u32),
    /// The stream ends, unless its version has changed since.
    Stream(u32, u32),
    /// The stream's sender raises its rate, unless its hold has changed since.
    Raise(u32, u32),
}

/// What a job is doing.
#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Waiting,
    /// Computing, with the overlapping part of its streams.
    Computing {
        done: bool,
    },
    /// The rest of its streams.
    Communicating,
}

struct JobState {
    iterations_left: u64,
    stage: Stage,
    /// Streams on the way.
    open: u32,
    streams: std::ops::Range<u32>,
}

struct StreamState {
    /// With a link of its own at the end, which is its sender's rate, where rates climb.
    stream: Stream,
    job: u32,
    /// Bytes left, as of `since`.
    left: f64,
    since: f64,
    rate: f64,
    version: u32,
    active: bool,
    climb: Climb,
    /// Counts holds.
    hold: u32,
    raising: bool,
}

struct World<'a> {
    runs: &'a [Run],
    transport: Transport,
    from_nics: &'a [bool],
    echoes: &'a [Vec<u32>],
    /// Where the streams' own links begin.
    own_links: u32,
    filler: Filler,
    now: f64,
    events: BinaryHeap<Reverse<At<Event>>>,
    jobs: Vec<JobState>,
    streams: Vec<StreamState>,
    /// Active streams by directed link.
    on: Vec<Vec<u32>>,
    /// Links whose streams came or went since rates were last computed.
    changed: Vec<u32>,
    seen_link: Vec<u32>,
    seen_stream: Vec<u32>,
    round: u32,
}

/// Bytes below this are rounding.
const NOTHING: f64 = 1e-3;

impl<'a> World<'a> {
    fn new(fabric: &Fabric<'a>, runs: &'a [Run]) -> Self {
        let own_links = fabric.capacity_bps.len() as u32;
        let mut capacity = fabric.capacity_bps.to_vec();
        let mut streams = Vec::new();
        let mut jobs = Vec::new();
        let mut events = BinaryHeap::new();
        for (job, run) in (0..).zip(runs) {
            let first = streams.len() as u32;
            for stream in &run.streams {
                let mut stream = stream.clone();
                if fabric.transport.recovery.is_some() && !stream.uses.is_empty() {
                    let link = own_links + streams.len() as u32;
                    stream.uses.push(Use { link, weight: 1.0 });
                }
                streams.push(StreamState::new(stream, job));
            }
            jobs.push(JobState {
                iterations_left: run.iterations,
                stage: Stage::Waiting,
                open: 0,
                streams: first..streams.len() as u32,
            });
            if run.iterations > 0 {
                events.push(Reverse(At(run.begins_ns as f64, Event::Job(job))));
            }
        }
        if fabric.transport.recovery.is_some() {
            capacity.resize(capacity.len() + streams.len(), u64::MAX);
        }
        Self {
            runs,
            transport: fabric.transport,
            from_nics: fabric.from_nics,
            echoes: fabric.echoes,
            own_links,
            filler: Filler::new(&capacity),
            now: 0.0,
            events,
            jobs,
            seen_stream: vec![0; streams.len()],
            streams,
            on: vec![Vec::new(); capacity.len()],
            changed: Vec::new(),
            seen_link: vec![0; capacity.len()],
            round: 0,
        }
    }

    /// Goes on until a job ends an iteration.
    fn step(&mut self) -> Option<u32> {
        loop {
            // Rates are computed when time moves on: what happens at one instant costs once.
            let next = self.events.peek().map(|Reverse(at)| *at);
            if next.is_none_or(|next| next.0 > self.now) && !self.changed.is_empty() {
                self.refill();
                continue;
            }
            let next = next?;
            self.events.pop();
            self.now = next.0.max(self.now);
            let job = match next.1 {
                Event::Job(job) => self.job_event(job),
                Event::Stream(stream, version)
                    if self.streams[stream as usize].version == version =>
                {
                    self.stream_ends(stream)
                }
                Event::Stream(..) => None,
                Event::Raise(stream, hold) => {
                    self.raise(stream, hold);
                    None
                }
            };
            if job.is_some() {
                return job;
            }
        }
    }

    fn job_event(&mut self, job: u32) -> Option<u32> {
        let run = &self.runs[job as usize];
        let state = &mut self.jobs[job as usize];
        match state.stage {
            Stage::Waiting => {
                state.stage = Stage::Computing { done: false };
                self.events.push(Reverse(At(
                    self.now + run.compute_ns as f64,
                    Event::Job(job),
                )));
                self.open(job, f64::from(run.overlap_ppm) / 1e6);
            }
            Stage::Computing { .. } => {
                state.stage = Stage::Computing { done: true };
            }
            Stage::Communicating => {}
        }
        self.advance(job)
    }

    /// Moves a job on if all it waits for is done.
    fn advance(&mut self, job: u32) -> Option<u32> {
        let run = &self.runs[job as usize];
        let state = &mut self.jobs[job as usize];
        if state.open > 0 {
            return None;
        }
        if state.stage == (Stage::Computing { done: true }) {
            state.stage = Stage::Communicating;
            self.open(job, 1.0 - f64::from(run.overlap_ppm) / 1e6);
            if self.jobs[job as usize].open > 0 {
                return None;
            }
        }
        let state = &mut self.jobs[job as usize];
        if state.stage != Stage::Communicating {
            return None;
        }
        state.iterations_left -= 1;
        state.stage = Stage::Waiting;
        if state.iterations_left > 0 {
            self.events.push(Reverse(At(self.now, Event::Job(job))));
        }
        Some(job)
    }

    /// Starts a share of a job's streams.
    fn open(&mut self, job: u32, share: f64) {
        for index in self.jobs[job as usize].streams.clone() {
            let state = &mut self.streams[index as usize];
            let bytes = state.stream.bytes as f64 * share;
            if bytes <= NOTHING || state.stream.uses.is_empty() {
                continue;
            }
            state.left = bytes;
            state.since = self.now;
            state.rate = 0.0;
            state.active = true;
            state.version += 1;
            state.climb = Climb::START;
            state.hold += 1;
            state.raising = false;
            self.jobs[job as usize].open += 1;
            if self.transport.recovery.is_some() {
                let own = self.own_links + index;
                self.filler.set_capacity(own, Climb::START.rate);
            }
            for used in &self.streams[index as usize].stream.uses {
                self.on[used.link as usize].push(index);
                self.changed.push(used.link);
            }
        }
    }

    fn stream_ends(&mut self, index: u32) -> Option<u32> {
        let state = &mut self.streams[index as usize];
        state.active = false;
        state.version += 1;
        let job = state.job;
        for used in &self.streams[index as usize].stream.uses {
            let on = &mut self.on[used.link as usize];
            if let Some(at) = on.iter().position(|other| *other == index) {
                on.swap_remove(at);
            }
            self.changed.push(used.link);
        }
        self.jobs[job as usize].open -= 1;
        self.advance(job)
    }

    /// New rates for all streams that the changes reach.
    fn refill(&mut self) {
        self.round += 1;
        let mut links = std::mem::take(&mut self.changed);
        links.retain(|l| {
            std::mem::replace(&mut self.seen_link[*l as usize], self.round) != self.round
        });
        let mut reached: Vec<u32> = Vec::new();
        while let Some(link) = links.pop() {
            for index in &self.on[link as usize] {
                let seen = &mut self.seen_stream[*index as usize];
                if std::mem::replace(seen, self.round) == self.round {
                    continue;
                }
                reached.push(*index);
                let uses = &self.streams[*index as usize].stream.uses;
                let echo = self.echoes.get(*index as usize);
                let reaches = uses.iter().map(|used| used.link);
                for link in reaches.chain(echo.into_iter().flatten().copied()) {
                    let seen = &mut self.seen_link[link as usize];
                    if std::mem::replace(seen, self.round) != self.round {
                        links.push(link);
                    }
                }
            }
        }
        reached.sort_unstable();
        let streams: Vec<&Stream> = reached
            .iter()
            .map(|i| &self.streams[*i as usize].stream)
            .collect();
        let shares = match &self.transport.windows {
            Some(windows) => {
                let echo = |index: &u32| self.echoes.get(*index as usize).map_or(&[][..], |e| e);
                let echoes: Vec<&[u32]> = reached.iter().map(echo).collect();
                windows.shares(&self.filler, &streams, &echoes)
            }
            None => self.filler.shares(&streams),
        };
        for (index, share) in reached.iter().zip(&shares) {
            self.set_rate(*index, share.bps);
        }
        if let Some(law) = self.transport.recovery {
            for (index, share) in reached.into_iter().zip(shares) {
                self.note_holder(index, share, &law);
            }
        }
    }

    fn set_rate(&mut self, index: u32, rate: f64) {
        let state = &mut self.streams[index as usize];
        if (rate - state.rate).abs() <= state.rate * 1e-12 {
            return;
        }
        state.left -= state.rate / 8e9 * (self.now - state.since);
        state.since = self.now;
        state.rate = rate;
        state.version += 1;
        let ends = self.now + state.left.max(0.0) * 8e9 / rate;
        self.events
            .push(Reverse(At(ends, Event::Stream(index, state.version))));
    }

    /// A sender that a switch's queue holds back is marked down to its share; one that has room climbs. One whose
    /// NIC sends all it can sees no marks: what comes in is no more than goes out.
    fn note_holder(&mut self, index: u32, share: Share, law: &Recovery) {
        let own = self.own_links + index;
        let held_by_own = share.link == Some(own);
        let free = share.link.is_none() || self.nic_is_full(index);
        let state = &mut self.streams[index as usize];
        if held_by_own {
            if !std::mem::replace(&mut state.raising, true) {
                let at = self.now + law.interval_ns as f64;
                self.events
                    .push(Reverse(At(at, Event::Raise(index, state.hold))));
            }
        } else if !free {
            state.climb.hold(share.bps);
            state.hold += 1;
            state.raising = false;
            self.filler.set_capacity(own, share.bps);
        }
    }

    /// Whether a NIC that the stream leaves sends all it can.
    fn nic_is_full(&self, index: u32) -> bool {
        let uses = self.streams[index as usize].stream.uses.iter();
        let from_nic = |link: u32| self.from_nics.get(link as usize).is_some_and(|nic| *nic);
        uses.map(|used| used.link)
            .filter(|link| from_nic(*link))
            .any(|link| {
                let load = self.on[link as usize].iter().map(|other| {
                    let other = &self.streams[*other as usize];
                    let used = other.stream.uses.iter().find(|u| u.link == link);
                    used.map_or(0.0, |used| other.rate * f64::from(used.weight))
                });
                load.sum::<f64>() > 0.999 * self.filler.capacity(link)
            })
    }

    /// The sender's timer has run out.
    fn raise(&mut self, index: u32, hold: u32) {
        let Some(law) = self.transport.recovery else {
            return;
        };
        let state = &mut self.streams[index as usize];
        if !state.active || state.hold != hold {
            return;
        }
        state.raising = false;
        state.climb.raise(&law);
        let own = self.own_links + index;
        self.filler.set_capacity(own, state.climb.rate);
        self.changed.push(own);
    }
}

impl StreamState {
    fn new(stream: Stream, job: u32) -> Self {
        Self {
            stream,
            job,
            left: 0.0,
            since: 0.0,
            rate: 0.0,
            version: 0,
            active: false,
            climb: Climb::START,
            hold: 0,
            raising: false,
        }
    }
}
