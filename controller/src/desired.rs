//! The desired state of the whole fabric, and how it changes when links or flows do. Pure: no session.

use crate::entries::ranks;
use crate::intent::{FlowKey, Intent, Pin, Planner, Unfit, View};
use crate::placement::{Demand, FlowPlan, Path, on_paths, place, replace};
use crate::reaction::{Landing, Ns, ReactionModel};
use crate::reconcile::{LARGEST_BATCH, Plan, State, diff};
use crate::routing::LinkSet;
use std::sync::Arc;
use topology::{SwitchId, Topology};

/// A flow that the controller places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// How the data plane knows it.
    pub key: FlowKey,
    /// Where it goes and how large it is.
    pub demand: Demand,
}

/// What one switch has to do for a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The switch.
    pub switch: SwitchId,
    /// Its batches, in order.
    pub plan: Plan,
}

/// How far above the bound the busiest link may be before flows that could stay are moved as well.
const TOLERANCE: f64 = 0.0;

/// What the fabric should hold, and why.
#[derive(Clone, Debug)]
pub struct Desired {
    planner: Planner,
    view: View,
    flows: Vec<Flow>,
    placed: FlowPlan,
    intent: Intent,
    states: Vec<Arc<State>>,
}

impl Desired {
    /// The fabric with all links up and no flow placed.
    ///
    /// # Errors
    /// A value of the topology is too wide for the pipeline.
    pub fn new(planner: Planner) -> Result<Self, Unfit> {
        let view = planner.view(&LinkSet::none());
        let placed = place(&planner.network(&view), &[]);
        let mut desired = Self {
            planner,
            view,
            flows: Vec::new(),
            placed,
            intent: Intent::default(),
            states: Vec::new(),
        };
        desired.refresh()?;
        Ok(desired)
    }

    /// The topology.
    #[must_use]
    pub fn topology(&self) -> &Arc<Topology> {
        self.planner.topology()
    }

    /// Routes as they are now.
    #[must_use]
    pub fn view(&self) -> &View {
        &self.view
    }

    /// The links that are down.
    #[must_use]
    pub fn down(&self) -> &LinkSet {
        &self.view.down
    }

    /// Flows that are placed.
    #[must_use]
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// The paths of [`flows`](Self::flows), and how well they are spread.
    #[must_use]
    pub fn placed(&self) -> &FlowPlan {
        &self.placed
    }

    /// The path of the flow in this place of [`flows`](Self::flows).
    #[must_use]
    pub fn path(&self, flow: usize) -> Option<&Path> {
        self.placed.paths.get(flow)?.as_ref()
    }

    /// The entries of all switches, as types.
    #[must_use]
    pub fn intent(&self) -> &Intent {
        &self.intent
    }

    /// The entries of all switches, in the form that is compared and written.
    #[must_use]
    pub fn states(&self) -> &[Arc<State>] {
        &self.states
    }

    /// Places `flows` instead of those that were placed before. Flows that are the same keep their paths
    /// where that is as good as any.
    ///
    /// # Errors
    /// An address or number of a flow does not fit the pipeline.
    pub fn set_flows(&mut self, flows: Vec<Flow>) -> Result<Vec<Change>, Unfit> {
        let before: std::collections::BTreeMap<FlowKey, &Path> = self
            .flows
            .iter()
            .zip(&self.placed.paths)
            .filter_map(|(flow, path)| Some((flow.key, path.as_ref()?)))
            .collect();
        let old: Vec<Option<Path>> = flows
            .iter()
            .map(|flow| before.get(&flow.key).map(|path| (*path).clone()))
            .collect();
        let demands: Vec<Demand> = flows.iter().map(|f| f.demand).collect();
        self.placed = replace(&self.planner.network(&self.view), &demands, &old, TOLERANCE);
        self.flows = flows;
        self.refresh()
    }

    /// Puts `flows` on these paths instead of choosing; flows whose path is missing, or leads over a link
    /// that is down, take the routes.
    ///
    /// # Errors
    /// As [`set_flows`](Self::set_flows).
    pub fn set_paths(
        &mut self,
        flows: Vec<Flow>,
        paths: Vec<Option<Path>>,
    ) -> Result<Vec<Change>, Unfit> {
        let demands: Vec<Demand> = flows.iter().map(|f| f.demand).collect();
        self.placed = on_paths(&self.planner.network(&self.view), &demands, &paths);
        self.flows = flows;
        self.refresh()
    }

    /// The planner.
    #[must_use]
    pub fn planner(&self) -> &Planner {
        &self.planner
    }

    /// Takes note of which links are down: routes change, and flows whose paths broke move.
    ///
    /// # Errors
    /// As [`set_flows`](Self::set_flows).
    pub fn set_down(&mut self, down: &LinkSet) -> Result<Vec<Change>, Unfit> {
        self.view = self.planner.view(down);
        let demands: Vec<Demand> = self.flows.iter().map(|f| f.demand).collect();
        let network = self.planner.network(&self.view);
        self.placed = replace(&network, &demands, &self.placed.paths, TOLERANCE);
        self.refresh()
    }

    /// Plans anew; what each switch has to do for it.
    fn refresh(&mut self) -> Result<Vec<Change>, Unfit> {
        let placed = self.flows.iter().zip(&self.placed.paths);
        let mut placed: Vec<(&Flow, &Path)> = placed
            .filter_map(|(flow, path)| Some((flow, path.as_ref()?)))
            .collect();
        // Where a table is too small for all, the largest flows keep their place.
        placed.sort_by_key(|(flow, _)| std::cmp::Reverse(flow.demand.bytes));
        let pins: Vec<Pin> = placed
            .into_iter()
            .map(|(flow, path)| Pin {
                flow: flow.key,
                path: path.clone(),
            })
            .collect();
        self.intent = self.planner.plan(&self.view, &pins);
        let states = self.intent.states(self.topology())?;
        let ranks = ranks();
        let empty = State::default();
        let changes = self
            .topology()
            .switch_ids()
            .zip(&states)
            .map(|(switch, to)| {
                let from = self.states.get(switch.index()).map_or(&empty, |s| s);
                Change {
                    switch,
                    plan: diff(to, from, &ranks, LARGEST_BATCH),
                }
            })
            .filter(|change| !change.plan.is_empty())
            .collect();
        self.states = states.into_iter().map(Arc::new).collect();
        Ok(changes)
    }
}

/// When each batch of `changes` takes effect after a failure at `failed_at`, by the model.
#[must_use]
pub fn landings(model: &ReactionModel, failed_at: Ns, changes: &[Change]) -> Vec<Landing> {
    let sizes: Vec<(u32, Vec<usize>)> = changes
        .iter()
        .map(|c| (c.switch.0, c.plan.batches.iter().map(Vec::len).collect()))
        .collect();
    model.landings(
        failed_at,
        sizes
            .iter()
            .map(|(switch, sizes)| (*switch, sizes.as_slice())),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::entries::PlacedFlow;
    use crate::intent::Options;
    use crate::reconcile::apply;
    use p4runtime::typed::TableKey;
    use topology::{Clos, NicId, Tier, generate};

    fn desired() -> Desired {
        let topology = Arc::new(generate(&Clos::default()).unwrap());
        Desired::new(Planner::new(topology, Options::default())).unwrap()
    }

    fn flows(topology: &Topology) -> Vec<Flow> {
        // Every NIC of the first segment to its counterpart in the second.
        let half = topology.nics().len() as u32 / 2;
        (0..half)
            .map(|n| {
                let [src, dst] = [n, n + half].map(|n| topology[NicId(n)].v4.into());
                let demand = Demand {
                    src: n,
                    dst: n + half,
                    bytes: 1 << 20,
                    port: None,
                };
                Flow {
                    key: FlowKey::roce(src, dst, 0x100 + n),
                    demand,
                }
            })
            .collect()
    }

    #[test]
    fn a_change_takes_every_switch_from_one_state_to_the_next() {
        let mut desired = desired();
        let topology = Arc::clone(desired.topology());
        let mut held: Vec<State> = desired.states().iter().map(|s| (**s).clone()).collect();
        let leaf = topology.tier(Tier::Leaf).next().unwrap();
        let lost = topology.uplinks(leaf).next().unwrap().link;
        let placed = desired.set_flows(flows(&topology)).unwrap();
        let failed = desired.set_down(&LinkSet::from_iter([lost.0])).unwrap();
        let healed = desired.set_down(&LinkSet::none()).unwrap();
        for changes in [&placed, &failed, &healed] {
            for change in changes {
                for update in change.plan.updates() {
                    apply(&mut held[change.switch.index()], update);
                }
            }
        }
        let wanted: Vec<State> = desired.states().iter().map(|s| (**s).clone()).collect();
        assert_eq!(held, wanted);
    }

    #[test]
    fn a_failure_moves_the_flows_on_the_link_and_no_others() {
        let mut desired = desired();
        let topology = Arc::clone(desired.topology());
        desired.set_flows(flows(&topology)).unwrap();
        assert_eq!(desired.placed().max_load_ps, desired.placed().bound_ps);
        let before = desired.placed().clone();
        let lost = before.paths[0].as_ref().unwrap().steps[1].link;
        let changes = desired.set_down(&LinkSet::from_iter([lost])).unwrap();
        assert!(!changes.is_empty());
        let after = desired.placed();
        assert_eq!(after.max_load_ps, after.bound_ps);
        for (old, new) in before.paths.iter().zip(&after.paths) {
            let broken = old.as_ref().unwrap().steps.iter().any(|s| s.link == lost);
            assert!(broken || old == new);
        }
        assert!(
            after
                .paths
                .iter()
                .flatten()
                .all(|p| p.steps.iter().all(|s| s.link != lost))
        );
        // Nobody writes more than a few entries.
        assert!(changes.iter().all(|c| c.plan.len() < 60), "{changes:#?}");
    }

    #[test]
    fn batches_land_by_the_model() {
        let mut desired = desired();
        let topology = Arc::clone(desired.topology());
        let leaf = topology.tier(Tier::Leaf).next().unwrap();
        let lost = topology.uplinks(leaf).next().unwrap().link;
        let changes = desired.set_down(&LinkSet::from_iter([lost.0])).unwrap();
        let model = ReactionModel::default();
        let landings = landings(&model, 1_000, &changes);
        assert_eq!(
            landings.len(),
            changes.iter().map(|c| c.plan.batches.len()).sum::<usize>()
        );
        let first = landings[0].at;
        assert!(first >= 1_000 + model.detect_ns + model.compute_ns + model.rpc_ns);
    }

    /// Two jobs, then one: its pins stay at every step between, and nothing of the other is left.
    #[test]
    fn a_job_that_ends_takes_its_pins_along_and_no_others() {
        let mut desired = desired();
        let topology = Arc::clone(desired.topology());
        let all = flows(&topology);
        let (stays, ends) = all.split_at(all.len() / 2);
        let pins = |state: &State| -> Vec<_> {
            let mine = state.entries.keys();
            mine.filter(|key| key.table == PlacedFlow::ID)
                .cloned()
                .collect()
        };
        desired.set_flows(stays.to_vec()).unwrap();
        let alone: Vec<_> = desired.states().iter().map(|s| pins(s)).collect();
        assert_eq!(alone.iter().map(Vec::len).sum::<usize>(), stays.len());
        desired.set_flows(all.clone()).unwrap();
        let mut held: Vec<State> = desired.states().iter().map(|s| (**s).clone()).collect();
        let both: usize = held.iter().map(|s| pins(s).len()).sum();
        assert_eq!(both, stays.len() + ends.len());
        for change in desired.set_flows(stays.to_vec()).unwrap() {
            let at = change.switch.index();
            for update in change.plan.updates() {
                apply(&mut held[at], update);
                let now = pins(&held[at]);
                assert!(alone[at].iter().all(|pin| now.contains(pin)), "{update:?}");
            }
        }
        let left: Vec<_> = held.iter().map(pins).collect();
        assert_eq!(left, alone);
        desired.set_flows(Vec::new()).unwrap();
        assert!(desired.states().iter().all(|s| pins(s).is_empty()));
    }

    #[test]
    fn a_full_table_leaves_flows_to_the_routes_and_says_so() {
        let mut desired = desired();
        let topology = Arc::clone(desired.topology());
        let room = u32::try_from(<PlacedFlow as TableKey>::SIZE).unwrap();
        let [src, dst] = [0, 16].map(|n| topology[NicId(n)].v4.into());
        let flows = (0..room + 5).map(|i| Flow {
            key: FlowKey::roce(src, dst, 0x100 + i),
            demand: Demand {
                src: 0,
                dst: 16,
                bytes: 1 << 20,
                port: None,
            },
        });
        desired.set_flows(flows.collect()).unwrap();
        let leaf = topology[NicId(0)].ports().next().unwrap().leaf.switch.0;
        let left_out: Vec<_> = desired.intent().left_out.iter().collect();
        assert_eq!(left_out, [(&leaf, &5)]);
        desired.set_flows(Vec::new()).unwrap();
        assert!(desired.intent().left_out.is_empty());
    }
}
