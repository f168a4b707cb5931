//! The fewest bytes that a job can send across LA domains, whatever hosts it gets and however they are seated.
//!
//! What crosses is a sum over the rooms. Of a ring of `n` hosts that has `k` in a room, one edge counts for
//! the room unless `k` is 0 or `n`; of all pairs, `k (n - k)`; a line or a tree of `d` rooms is cut `d - 1`
//! times, which is at least half an edge for each of its rooms, and one for each less one for the group. So a
//! bound on the *boundary* of any set of `s` hosts is one on the sum, minimised over how many hosts the rooms
//! can give.
//!
//! The boundary's bound uses that hosts stand in a grid, and that every group is a line of it along one
//! dimension, or a box over several of them. Columns along the dimensions dealt with so far have a known least
//! boundary `F(k)` for `k` hosts. Adding a dimension of size `a`, a set has `a` columns; pushing the hosts of
//! each column together makes the rows across them as full or as empty as can be, which does not raise a sum
//! of concave functions of their counts. What remains is to choose columns `k_1 >= k_2 >= ... >= k_a`, whose
//! rows cost `sum_j (k_j - k_(j+1)) r(j)`: a dynamic program over columns, heights and sums.

use super::host_groups::{HostGroup, Shape, host_groups};
use super::inventory::Inventory;
use crate::workload::{Dimension, Over, Workload};
use std::collections::{BTreeMap, BTreeSet};

/// Jobs of more hosts get the bound of the lightest edges only.
const MOST_HOSTS: usize = 2048;

/// Bytes of an iteration that cross LA domains at least, on those hosts of the inventory that are `open`. 0 if
/// there are not enough.
#[must_use]
pub fn least_crossing(
    workload: &Workload,
    inventory: &Inventory,
    open: impl Fn(u32) -> bool,
) -> u64 {
    let groups = host_groups(workload);
    let hosts = workload.hosts() as usize;
    let rails = inventory.rooms().iter().map(|r| r.las.len()).min();
    let mut alike: BTreeMap<Vec<usize>, u64> = BTreeMap::new();
    for rail in 0..rails.unwrap_or(0) {
        let mut sizes: BTreeMap<u32, usize> = BTreeMap::new();
        for room in inventory.rooms() {
            let free = room.hosts.iter().filter(|h| open(**h)).count();
            *sizes.entry(room.las[rail]).or_default() += free;
        }
        let mut sizes: Vec<usize> = sizes.into_values().map(|s| s.min(hosts)).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        *alike.entry(sizes).or_default() += 1;
    }
    let boundary = Boundaries::new(workload, &groups);
    let sum: u64 = alike
        .iter()
        .map(|(sizes, times)| of_sizes(&groups, hosts, sizes, boundary.as_ref()) * times)
        .sum();
    sum / rails.unwrap_or(1).max(1) as u64
}

fn of_sizes(
    groups: &[HostGroup],
    hosts: usize,
    sizes: &[usize],
    boundary: Option<&Boundaries>,
) -> u64 {
    let mut sum = 0;
    let fewest = sizes.iter().position(|size| {
        sum += size;
        sum >= hosts
    });
    let Some(fewest) = fewest else { return 0 };
    let joined = joined(groups, hosts, fewest + 1);
    let cut = boundary.map_or(0.0, |b| b.least(sizes));
    joined.max(cut.max(0.0) as u64)
}

/// All that exchange something hang together, so `rooms` rooms are joined by at least `rooms - 1` edges,
/// each of the lightest kind; one ring over all hosts enters and leaves every room.
fn joined(groups: &[HostGroup], hosts: usize, rooms: usize) -> u64 {
    if rooms < 2 {
        return 0;
    }
    let several = groups.iter().filter(|g| g.slots.len() > 1);
    let lightest = several.map(|g| g.edge_bytes).min().unwrap_or(0);
    let whole = groups.iter().filter(|g| g.slots.len() == hosts);
    let rings = whole.filter(|g| g.shape == Shape::Ring);
    let rings: u64 = rings.map(|g| g.edge_bytes * rooms as u64).sum();
    rings.max(lightest * (rooms as u64 - 1))
}

/// A kind of group: the dimensions it spans, and what its cuts cost.
struct Kind {
    spans: BTreeSet<Axis>,
    shape: Shape,
    edge_bytes: f64,
}

impl Kind {
    /// More than any sum of its costs in a job of so many hosts.
    fn most(&self, hosts: usize) -> f64 {
        let edges = match self.shape {
            Shape::Pairs => hosts * hosts,
            Shape::Ring | Shape::Line | Shape::Tree => 2 * hosts,
        };
        edges as f64 * self.edge_bytes
    }

    /// Cost of `k` of its `n` hosts in a room; `whole_lines` counts lines and trees with a full edge.
    fn cost(&self, k: usize, n: usize, whole_lines: bool) -> f64 {
        if k == 0 || k >= n {
            return 0.0;
        }
        let edges = match self.shape {
            Shape::Ring => 1.0,
            Shape::Pairs => k as f64 * (n - k) as f64,
            Shape::Line | Shape::Tree if whole_lines => 1.0,
            Shape::Line | Shape::Tree => 0.5,
        };
        edges * self.edge_bytes
    }
}

/// A dimension of the grid; the data dimension is two, by who shares experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Axis {
    Tensor,
    Context,
    Expert,
    ExpertData,
    Pipeline,
}

fn axes(over: Over) -> Vec<Axis> {
    use Axis::{Context, Expert, ExpertData, Pipeline, Tensor};
    match over {
        Over::World => vec![Tensor, Context, Expert, ExpertData, Pipeline],
        Over::Tensor => vec![Tensor],
        Over::Context => vec![Context],
        Over::Data => vec![Expert, ExpertData],
        Over::DataContext => vec![Context, Expert, ExpertData],
        Over::Pipeline => vec![Pipeline],
        Over::Expert => vec![Expert],
        Over::ExpertData => vec![ExpertData],
    }
}

/// Sizes of the axes counted in hosts, those of more than one; `None` if a host ends inside a dimension.
fn host_axes(workload: &Workload) -> Option<Vec<(Axis, usize)>> {
    let grid = &workload.grid;
    let ep = grid.expert_size();
    let ranks = grid.order().iter().flat_map(|dimension| match dimension {
        Dimension::Tensor => vec![(Axis::Tensor, grid.size(*dimension))],
        Dimension::Context => vec![(Axis::Context, grid.size(*dimension))],
        Dimension::Pipeline => vec![(Axis::Pipeline, grid.size(*dimension))],
        Dimension::Data => vec![
            (Axis::Expert, ep),
            (Axis::ExpertData, grid.size(*dimension) / ep),
        ],
    });
    let mut inside = workload.ranks_per_host;
    let mut list = Vec::new();
    for (axis, size) in ranks {
        let hosts = if inside.is_multiple_of(size) {
            inside /= size;
            1
        } else if size.is_multiple_of(inside) {
            size / std::mem::replace(&mut inside, 1)
        } else {
            return None;
        };
        if hosts > 1 {
            list.push((axis, hosts as usize));
        }
    }
    Some(list)
}

/// Least boundaries of sets of hosts by their size.
pub(super) struct Boundaries {
    /// Lines and trees counted by half edges; and by whole edges, with what is to be taken off the sum.
    halves: Vec<f64>,
    wholes: (Vec<f64>, f64),
    /// By how much sums may be off.
    rounding: f64,
}

impl Boundaries {
    /// Of a job with these groups; `None` for one that is too large, or no grid of hosts.
    pub(super) fn new(workload: &Workload, groups: &[HostGroup]) -> Option<Self> {
        let hosts = workload.hosts() as usize;
        if hosts > MOST_HOSTS || groups.is_empty() {
            return None;
        }
        let axes = host_axes(workload)?;
        let (kinds, lines) = kinds(workload, groups, &axes)?;
        Some(Self {
            halves: boundary(&axes, &kinds, false)?,
            wholes: (boundary(&axes, &kinds, true)?, lines),
            rounding: kinds.iter().map(|kind| kind.most(hosts)).sum::<f64>() * f64::EPSILON,
        })
    }

    /// Least sum over rooms of these sizes, all hosts together, in whole bytes.
    fn least(&self, sizes: &[usize]) -> f64 {
        let of = |cost: &[f64]| share_out(cost, sizes).map_or(0.0, |(sum, _)| sum);
        let sum = of(&self.halves).max(of(&self.wholes.0) - self.wholes.1);
        // All are halves of whole numbers, which floats add up exactly unless they are too large.
        if self.rounding < 0.25 {
            sum.ceil()
        } else {
            (sum - self.rounding).floor()
        }
    }

    /// How many hosts to take from rooms of these sizes for the least sums, by halves and by wholes.
    pub(super) fn best_sizes(&self, sizes: &[usize]) -> Vec<Vec<usize>> {
        let both = [&self.halves, &self.wholes.0].into_iter();
        let take = both.filter_map(|cost| share_out(cost, sizes));
        let mut list: Vec<Vec<usize>> = take.map(|(_, take)| take).collect();
        list.dedup();
        list
    }
}

/// The kinds of groups, and the bytes of one edge of every line and tree. `None` if groups are not the boxes of
/// the grid that they should be.
fn kinds(
    workload: &Workload,
    groups: &[HostGroup],
    axes_of_hosts: &[(Axis, usize)],
) -> Option<(Vec<Kind>, f64)> {
    let (mut kinds, mut lines) = (Vec::new(), 0.0);
    for (index, exchange) in workload.exchanges.iter().enumerate() {
        let mine: Vec<&HostGroup> = groups.iter().filter(|g| g.exchange == index).collect();
        let Some(first) = mine.first() else { continue };
        let spans: BTreeSet<Axis> = axes(exchange.over)
            .into_iter()
            .filter(|axis| axes_of_hosts.iter().any(|(known, _)| known == axis))
            .collect();
        let of = axes_of_hosts
            .iter()
            .filter(|(axis, _)| spans.contains(axis));
        let size: usize = of.map(|(_, size)| size).product();
        let alike = |g: &&HostGroup| g.slots.len() == size && g.edge_bytes == first.edge_bytes;
        if size < 2 || !mine.iter().all(alike) {
            return None;
        }
        if matches!(first.shape, Shape::Line | Shape::Tree) {
            lines += first.edge_bytes as f64 * mine.len() as f64;
        }
        kinds.push(Kind {
            spans,
            shape: first.shape,
            edge_bytes: first.edge_bytes as f64,
        });
    }
    Some((kinds, lines))
}

/// Least boundary of 0, 1, ... hosts: the best bound of all orders of the axes in which every kind spans
/// one axis, or all that come first. `None` if there is no such order.
fn boundary(axes: &[(Axis, usize)], kinds: &[Kind], whole_lines: bool) -> Option<Vec<f64>> {
    let mut best: Option<Vec<f64>> = None;
    for order in permutations(axes) {
        let Some(bound) = in_order(&order, kinds, whole_lines) else {
            continue;
        };
        best = Some(match best {
            None => bound,
            Some(known) => known.iter().zip(&bound).map(|(a, b)| a.max(*b)).collect(),
        });
    }
    best
}

fn permutations(axes: &[(Axis, usize)]) -> Vec<Vec<(Axis, usize)>> {
    let mut all = vec![Vec::new()];
    for axis in axes {
        let longer = |order: &Vec<(Axis, usize)>| {
            let order = order.clone();
            (0..=order.len()).map(move |at| {
                let mut longer = order.clone();
                longer.insert(at, *axis);
                longer
            })
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

fn in_order(order: &[(Axis, usize)], kinds: &[Kind], whole_lines: bool) -> Option<Vec<f64>> {
    let mut least = vec![0.0, 0.0];
    let mut seen: BTreeSet<Axis> = BTreeSet::new();
    let mut used = 0;
    for (axis, size) in order {
        let alone = kinds
            .iter()
            .filter(|k| k.spans.len() == 1 && k.spans.contains(axis));
        let alone: Vec<&Kind> = alone.collect();
        let row = |k: usize| {
            alone
                .iter()
                .map(|kind| kind.cost(k, *size, whole_lines))
                .sum()
        };
        let rows: Vec<f64> = (0..=*size).map(row).collect();
        least = with_axis(&least, &rows);
        seen.insert(*axis);
        used += alone.len();
        let boxes = kinds
            .iter()
            .filter(|k| k.spans.len() > 1 && k.spans == seen);
        for kind in boxes {
            let whole = least.len() - 1;
            for (k, cost) in least.iter_mut().enumerate() {
                *cost += kind.cost(k, whole, whole_lines);
            }
            used += 1;
        }
    }
    (used == kinds.len()).then_some(least)
}

/// Least boundary over one axis more: columns cost `column` by their hosts, rows across them `rows`.
fn with_axis(column: &[f64], rows: &[f64]) -> Vec<f64> {
    let (height, columns) = (column.len() - 1, rows.len() - 1);
    let hosts = height * columns;
    // By the height that the columns so far are at most, the last first, and by their hosts together.
    let mut so_far = vec![vec![f64::INFINITY; hosts + 1]; height + 1];
    for row in &mut so_far {
        row[0] = 0.0;
    }
    for number in (1..=columns).rev() {
        let step = rows[number] - rows[number - 1];
        let mut with: Vec<Vec<f64>> = Vec::with_capacity(height + 1);
        for k in 0..=height {
            let own = column[k] + k as f64 * step;
            let mut line = match with.last() {
                Some(lower) => lower.clone(),
                None => vec![f64::INFINITY; hosts + 1],
            };
            for sum in k..=hosts {
                line[sum] = line[sum].min(own + so_far[k][sum - k]);
            }
            with.push(line);
        }
        so_far = with;
    }
    so_far.pop().unwrap_or_default()
}

/// Least sum of `cost` over rooms of at most these sizes that have all hosts together, and how many each has;
/// `None` if they can't have them.
fn share_out(cost: &[f64], sizes: &[usize]) -> Option<(f64, Vec<usize>)> {
    let hosts = cost.len() - 1;
    let mut best = vec![f64::INFINITY; hosts + 1];
    best[0] = 0.0;
    let (mut room, mut choices) = (0, Vec::with_capacity(sizes.len()));
    for size in sizes {
        room = (room + size).min(hosts);
        let mut choice = vec![0usize; hosts + 1];
        for sum in (1..=room).rev() {
            for k in 1..=(*size).min(sum) {
                let with = best[sum - k] + cost[k];
                if with < best[sum] {
                    (best[sum], choice[sum]) = (with, k);
                }
            }
        }
        choices.push(choice);
    }
    if best[hosts].is_infinite() {
        return None;
    }
    let (mut left, mut take) = (hosts, vec![0; sizes.len()]);
    for (take, choice) in take.iter_mut().zip(&choices).rev() {
        *take = choice[left];
        left -= *take;
    }
    Some((best[hosts], take))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::placement::{Costs, seat};
    use proptest::prelude::*;

    fn job(parallel: &str, ranks_per_host: u32, collectives: &str) -> Workload {
        let text = format!(
            "name: j\nranks_per_host: {ranks_per_host}\nparallel: {{{parallel}}}\ncollectives:\n{collectives}"
        );
        Workload::parse("j.yaml", &text).unwrap()
    }

    /// The fewest bytes of all ways to seat a job's slots in rooms of these sizes, by trying them.
    fn by_trying(groups: &[HostGroup], hosts: usize, sizes: &[usize]) -> u64 {
        let mut least = u64::MAX;
        let mut seats = vec![0u32; hosts];
        loop {
            let mut left: Vec<usize> = sizes.to_vec();
            let fits = seats.iter().all(|room| {
                let left = &mut left[*room as usize];
                *left > 0 && {
                    *left -= 1;
                    true
                }
            });
            if fits {
                let sum = groups
                    .iter()
                    .map(|g| g.crossing(|slot| seats[slot as usize]))
                    .sum();
                least = least.min(sum);
            }
            let Some(at) = seats.iter().position(|s| *s as usize + 1 < sizes.len()) else {
                return least;
            };
            seats[at] += 1;
            seats[..at].fill(0);
        }
    }

    #[test]
    fn a_pipeline_is_cut_where_its_stages_meet() {
        let text = "  - {kind: all-reduce, over: dp, bytes_per_rank: 600}\n  - {kind: pipeline, over: pp, bytes_per_rank: 10, times: 2}\n";
        let job = job("dp: 2, pp: 3", 1, text);
        let inventory = Inventory::flat(&[4, 2]);
        // Both pipelines between the second and the third stage, 2 messages each way.
        assert_eq!(least_crossing(&job, &inventory, |_| true), 80);
        let hosts: Vec<u32> = (0..6).collect();
        let seating = seat(&job, &inventory, &hosts, 80, Costs::default());
        assert_eq!(seating.crossing[0], 80);
    }

    #[test]
    fn rooms_that_are_taken_give_nothing() {
        let text = "  - {kind: all-reduce, over: dp, bytes_per_rank: 600}\n";
        let job = job("dp: 4", 1, text);
        let inventory = Inventory::flat(&[4, 2, 2]);
        assert_eq!(least_crossing(&job, &inventory, |_| true), 0);
        // A ring over two rooms: two edges of 2 * 3 / 4 * 600.
        assert_eq!(least_crossing(&job, &inventory, |h| h > 3), 1800);
        assert_eq!(least_crossing(&job, &inventory, |h| h > 6), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        /// No way to seat the hosts of a small job crosses with less.
        #[test]
        fn nothing_is_below_the_bound(
            (dp, pp, cp) in (1u32..5, 1u32..4, 1u32..3), ep in 1u32..3, ranks in 1u32..3,
            sizes in proptest::collection::vec(1usize..6, 1..4),
            bytes in proptest::collection::vec(1u64..1000, 6),
            tree: bool,
        ) {
            let dp = dp * ep * ranks;
            let hosts = (dp * pp * cp / ranks) as usize;
            prop_assume!(hosts <= 8 && sizes.iter().sum::<usize>() >= hosts);
            let order = "order: [dp, cp, pp]";
            let mut text = String::new();
            let mut add = |size: u32, line: String| if size > 1 { text += &line };
            let algorithm = if tree { "tree" } else { "ring" };
            add(dp, format!("  - {{kind: all-reduce, over: dp, algorithm: {algorithm}, bytes_per_rank: {}}}\n", bytes[0]));
            add(pp, format!("  - {{kind: pipeline, over: pp, bytes_per_rank: {}}}\n", bytes[1]));
            add(cp, format!("  - {{kind: all-gather, over: cp, bytes_per_rank: {}}}\n", bytes[2]));
            add(ep, format!("  - {{kind: all-to-all, over: ep, bytes_per_rank: {}}}\n", bytes[3]));
            add(dp * pp * cp, format!("  - {{kind: all-reduce, over: world, bytes_per_rank: {}}}\n", bytes[4]));
            prop_assume!(!text.is_empty());
            let job = job(&format!("dp: {dp}, pp: {pp}, cp: {cp}, ep: {ep}, {order}"), ranks, &text);
            let groups = host_groups(&job);
            let room_sizes: Vec<u32> = sizes.iter().map(|s| *s as u32).collect();
            let bound = least_crossing(&job, &Inventory::flat(&room_sizes), |_| true);
            let least = by_trying(&groups, hosts, &sizes);
            prop_assert!(bound <= least, "bound {bound}, found {least}");
        }
    }
}
