//! A member that dies moves its own flows, evenly, and one that comes back takes them and no others.

use controller::intent::{Ars, Hellos, Mode, Options};
use topology::{NicId, SwitchId, Topology};

use crate::fabric::{Cores, Flow, frame};

const FABRIC: &str = "
name: two-leaves
clos: {segments: 2, hosts: 1, rails: 1, spines: 8}
";
const FLOWS: u32 = 16_000;
const MEMBERS: usize = 8;
/// Time between hellos, us: no test lasts long enough for a neighbour to be overdue, unless it says so.
const INTERVAL_US: u32 = 1_000_000;
const LINK: [u8; 2] = [0x88, 0xb5];
const HELLO: u8 = 0x11;
const DEAF: u8 = 0x80;

/// A leaf with eight uplinks, the flows of its NIC, and a clock.
struct Leaf {
    cores: Cores,
    switch: SwitchId,
    entrance: u16,
    uplinks: Vec<u16>,
    frames: Vec<Vec<u8>>,
    now_us: u64,
}

fn hello(flags: u8) -> Vec<u8> {
    let mut frame = [&[1, 0x80, 0xc2, 0, 0, 0x0e, 2, 0, 0, 0, 7, 7][..], &LINK].concat();
    frame.extend([HELLO, flags, 0, 0, 0, 0]);
    frame.resize(60, 0);
    frame
}

impl Leaf {
    async fn new(mode: Mode) -> Self {
        let ars = Ars {
            hellos: Some(Hellos {
                interval_us: INTERVAL_US,
                ..Hellos::default()
            }),
            probes: None,
            ..Ars::new(mode)
        };
        let topology = Topology::parse("two-leaves", FABRIC).unwrap();
        let options = Options {
            ars: Some(ars),
            ..Options::default()
        };
        let cores = Cores::new(topology, options).await;
        let topology = &cores.topology;
        let (from, to) = (NicId(0), NicId(1));
        let frames = (0..FLOWS).map(|n| {
            let flow = Flow {
                src_port: 0xc000 | (n & 0x3fff) as u16,
                dst_port: 4791,
                qp: n + 1,
            };
            frame(topology, from, to, flow)
        });
        let (switch, entrance) = cores.entrance(from);
        let leaf = Self {
            frames: frames.collect(),
            switch,
            entrance,
            uplinks: topology.uplinks(switch).map(|n| n.port).collect(),
            now_us: 1_000,
            cores,
        };
        assert_eq!(leaf.uplinks.len(), MEMBERS);
        for member in 0..MEMBERS {
            leaf.hears(member, 0);
        }
        leaf
    }

    /// A hello of the neighbour at an uplink.
    fn hears(&self, member: usize, flags: u8) {
        let port = self.uplinks[member];
        assert!(
            self.cores
                .pass(self.switch, port, &hello(flags), self.now_us)
                .is_empty()
        );
    }

    /// The member that carries each flow's next packet.
    fn members(&self) -> Vec<Option<usize>> {
        let member = |frame: &Vec<u8>| {
            let out = self
                .cores
                .pass(self.switch, self.entrance, frame, self.now_us);
            let (port, _) = out.first()?;
            self.uplinks.iter().position(|uplink| uplink == port)
        };
        self.frames.iter().map(member).collect()
    }
}

fn counts(members: &[Option<usize>]) -> [f64; MEMBERS] {
    let mut counts = [0.0; MEMBERS];
    for member in members.iter().flatten() {
        counts[*member] += 1.0;
    }
    counts
}

/// Each of some members has its share of what there is to share, within four standard deviations.
fn even(counts: &[f64], what: &str) {
    let all: f64 = counts.iter().sum();
    let share = 1.0 / counts.len() as f64;
    let deviation = (all * share * (1.0 - share)).sqrt();
    for count in counts {
        assert!(
            (count - all * share).abs() < 4.0 * deviation,
            "{what}: {counts:?}"
        );
    }
}

/// Flows that are elsewhere than before, by the member they had.
fn moved(before: &[Option<usize>], after: &[Option<usize>]) -> [f64; MEMBERS] {
    let pairs = before
        .iter()
        .zip(after)
        .filter(|(before, after)| before != after);
    counts(&pairs.map(|(before, _)| *before).collect::<Vec<_>>())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_members_flows_alone_move_and_come_back_with_it() {
    let leaf = Leaf::new(Mode::Fixed).await;
    let whole = leaf.members();
    even(&counts(&whole), "all alive");
    for dead in 0..MEMBERS {
        leaf.hears(dead, DEAF);
        let without = leaf.members();
        let had = counts(&whole)[dead];
        let gone = moved(&whole, &without);
        assert_eq!(
            (gone[dead], gone.iter().sum::<f64>()),
            (had, had),
            "others moved"
        );
        let mut taken: Vec<f64> = counts(&without)
            .iter()
            .zip(counts(&whole))
            .map(|(now, before)| now - before)
            .collect();
        assert_eq!(taken.remove(dead), -had);
        even(&taken, "what the survivors took over");

        leaf.hears(dead, 0);
        assert_eq!(
            leaf.members(),
            whole,
            "it has its own again, and nobody else moved"
        );
        if dead == 0 {
            let share = had / f64::from(FLOWS);
            println!(
                "of {FLOWS} flows {:.2} % move with one of {MEMBERS} members, and back",
                share * 100.0
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn flows_of_members_that_live_stay_through_any_failures() {
    let leaf = Leaf::new(Mode::Fixed).await;
    let whole = leaf.members();
    let mut dead = [false; MEMBERS];
    // Down, down, up, down, all down, one up.
    for (member, flags) in [(2, DEAF), (5, DEAF), (2, 0), (0, DEAF), (7, DEAF), (5, 0)] {
        leaf.hears(member, flags);
        dead[member] = flags == DEAF;
        for (home, now) in whole.iter().zip(leaf.members()) {
            let now = now.unwrap();
            assert!(!dead[now], "{now} is dead");
            assert!(
                dead[home.unwrap()] || *home == Some(now),
                "{home:?} lives, {now} was taken"
            );
        }
    }
    for member in 0..MEMBERS {
        leaf.hears(member, DEAF);
    }
    assert!(
        leaf.members().iter().all(Option::is_none),
        "there is no way"
    );
    leaf.hears(3, 0);
    assert!(leaf.members().iter().all(|member| *member == Some(3)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_is_back_gets_its_share_of_new_flowlets() {
    let mut leaf = Leaf::new(Mode::FlowletRandom).await;
    leaf.members();
    leaf.hears(4, DEAF);
    // A flow that draws the dead member takes another for this packet, and draws again for the next.
    let passes = [(); 7].map(|()| leaf.members());
    for without in &passes {
        assert_eq!(counts(without)[4], 0.0);
    }
    let without = &passes[6];
    leaf.hears(4, 0);
    assert_eq!(
        moved(without, &leaf.members()).iter().sum::<f64>(),
        0.0,
        "flowlets go on"
    );
    // Longer than the idle time.
    leaf.now_us += 51;
    let after = leaf.members();
    even(&counts(&after), "new flowlets");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_neighbour_is_left_after_the_detection_time_and_not_before() {
    let mut leaf = Leaf::new(Mode::Fixed).await;
    let whole = leaf.members();
    let detection = u64::from(INTERVAL_US) * 9 / 4;
    let (start, silent) = (leaf.now_us, 6);
    let interval = u64::from(INTERVAL_US);
    let mut left_at = None;
    for step in 1..=30u64 {
        leaf.now_us = start + step * interval / 10;
        if step % 10 == 0 {
            leaf.cores.submit(leaf.switch, &hello(0), leaf.now_us);
            for member in (0..MEMBERS).filter(|member| *member != silent) {
                leaf.hears(member, 0);
            }
        }
        let now = leaf.members();
        if now != whole && left_at.is_none() {
            let gone = moved(&whole, &now);
            assert_eq!(gone[silent], gone.iter().sum::<f64>(), "others moved");
            left_at = Some(leaf.now_us - start);
        }
    }
    let left_at = left_at.expect("it was never left");
    assert!(
        left_at > detection && left_at <= detection + interval / 10,
        "{left_at}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switch_that_does_not_speak_itself_takes_nobody_for_dead() {
    let mut leaf = Leaf::new(Mode::Fixed).await;
    let whole = leaf.members();
    leaf.now_us += 10 * u64::from(INTERVAL_US);
    assert_eq!(leaf.members(), whole);
}

#[tokio::test(flavor = "multi_thread")]
async fn placed_flows_leave_a_dead_first_link_and_come_back() {
    let mut leaf = Leaf::new(Mode::Fixed).await;
    leaf.frames.truncate(2 * MEMBERS);
    let whole = leaf.members();
    // Flows are numbered by their queue pairs, from 1.
    let queue_pairs: Vec<u32> = (1..=leaf.frames.len() as u32).collect();
    leaf.cores.place(NicId(0), NicId(1), &queue_pairs).await;
    let placed = leaf.members();
    assert_eq!(counts(&placed), [2.0; MEMBERS], "two on each uplink");
    assert_ne!(placed, whole);
    for dead in 0..MEMBERS {
        leaf.hears(dead, DEAF);
        for ((now, placed), home) in leaf.members().iter().zip(&placed).zip(&whole) {
            assert!(now.is_some() && *now != Some(dead));
            if *placed != Some(dead) {
                assert_eq!(now, placed, "its link lives");
            } else if *home != Some(dead) {
                assert_eq!(now, home, "as its group says");
            }
        }
        leaf.hears(dead, 0);
        assert_eq!(leaf.members(), placed);
    }
}
