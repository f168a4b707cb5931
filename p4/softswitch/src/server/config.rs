//! Setting and getting the forwarding pipeline (P4Runtime, "SetForwardingPipelineConfig RPC" and
//! "GetForwardingPipelineConfig RPC").

use std::sync::{Arc, Mutex};

use p4runtime::v1::{
    self, forwarding_pipeline_config::Cookie, get_forwarding_pipeline_config_request::ResponseType,
    set_forwarding_pipeline_config_request::Action,
};

use super::fault::Fault;
use super::pipeline::Pipeline;
use super::reconcile;
use super::state::{State, Target, lock};
use super::{Gate, Shared};
use crate::switch::{SharedSwitch, Switch};

/// A pipeline that was saved and not committed yet. Reads and writes refer to it: they go to a
/// switch of its own that gets no packets, whose state becomes the real one's on commit.
pub(crate) struct Saved {
    pub(crate) target: Target,
}

impl Shared {
    /// Does what the request asks, once the caller may.
    pub(super) fn set_pipeline(
        &self,
        gate: &mut Gate,
        request: v1::SetForwardingPipelineConfigRequest,
        role: &str,
    ) -> Result<(), Fault> {
        let action = request.action();
        match (action, request.config) {
            (Action::Unspecified, _) => Err(Fault::invalid(format!(
                "action {} is not one of VERIFY, VERIFY_AND_SAVE, VERIFY_AND_COMMIT, COMMIT, \
                 RECONCILE_AND_COMMIT",
                request.action
            ))),
            (Action::Commit, Some(_)) => Err(Fault::invalid(
                "COMMIT takes no config; it commits the saved one",
            )),
            (Action::Commit, None) => self.commit_saved(gate),
            (_, None) => Err(Fault::invalid("config is not set")),
            (action, Some(config)) => {
                let cookie = config.cookie.as_ref().map(|c| c.cookie);
                let pipeline = self.verify(config)?;
                match action {
                    Action::VerifyAndSave => self.save(gate, pipeline, cookie),
                    Action::VerifyAndCommit => self.commit(gate, pipeline, cookie),
                    Action::ReconcileAndCommit => {
                        return self.reconcile(gate, pipeline, cookie, role);
                    }
                    _ => {}
                }
                Ok(())
            }
        }
    }

    fn verify(&self, config: v1::ForwardingPipelineConfig) -> Result<Arc<Pipeline>, Fault> {
        let p4info = config
            .p4info
            .ok_or_else(|| Fault::invalid("config.p4info is not set"))?;
        let platform = p4info.pkg_info.as_ref();
        let platform = platform.and_then(|p| p.platform_properties.as_ref());
        let replicas = platform.map_or(0, |p| p.multicast_group_table_total_replicas);
        if replicas.unsigned_abs() as usize > self.config.max_replicas {
            return Err(Fault::invalid(format!(
                "the program wants {replicas} multicast replicas; the switch has {}",
                self.config.max_replicas
            )));
        }
        let (pipelines, device_config) = (&self.config.pipelines, config.p4_device_config);
        let pipeline = pipelines.bind(p4info, device_config, self.cpu_port)?;
        self.check_room(&pipeline)?;
        Ok(pipeline)
    }

    /// Whether the program's arrays fit.
    pub(super) fn check_room(&self, pipeline: &Pipeline) -> Result<(), Fault> {
        let program = &pipeline.program;
        let counters = program.counters().iter().filter(|c| c.is_indirect());
        let meters = program.meters().iter().filter(|m| m.is_indirect());
        let registers = program.registers().iter();
        let cells = counters
            .map(|c| c.size)
            .chain(meters.map(|m| m.size))
            .chain(registers.map(|r| r.size.saturating_mul(r.width.div_ceil(64) as usize)))
            .fold(0usize, usize::saturating_add);
        if cells > self.config.max_cells {
            return Err(Fault::invalid(format!(
                "the program wants {cells} cells of counters, meters and registers; the switch \
                 has {}",
                self.config.max_cells
            )));
        }
        Ok(())
    }

    /// A switch like this one that gets no packets.
    fn scratch(&self, pipeline: &Arc<Pipeline>, cookie: Option<u64>) -> Target {
        let mut switch = Switch::new(self.switch.lock().config().clone());
        switch.install(pipeline.program.clone());
        let down = lock(&self.state).down.clone();
        let state = State {
            down,
            ..State::default()
        };
        Target {
            pipeline: pipeline.clone(),
            cookie,
            switch: SharedSwitch::new(switch),
            state: Arc::new(Mutex::new(state)),
        }
    }

    fn live_target(&self, pipeline: Arc<Pipeline>, cookie: Option<u64>) -> Target {
        Target {
            pipeline,
            cookie,
            switch: self.switch.clone(),
            state: self.state.clone(),
        }
    }

    fn save(&self, gate: &mut Gate, pipeline: Arc<Pipeline>, cookie: Option<u64>) {
        let target = self.scratch(&pipeline, cookie);
        gate.saved = Some(Saved { target });
    }

    /// Makes the pipeline the switch's own, with empty tables.
    pub(super) fn commit(&self, gate: &mut Gate, pipeline: Arc<Pipeline>, cookie: Option<u64>) {
        gate.saved = None;
        let target = self.live_target(pipeline, cookie);
        {
            let (mut state, mut switch) = target.lock();
            restart(&target.pipeline, &mut switch, &mut state);
            self.set_live(Some(target.clone()));
        }
        tracing::info!(device_id = self.device_id, "forwarding pipeline committed");
    }

    fn commit_saved(&self, gate: &mut Gate) -> Result<(), Fault> {
        let saved = gate
            .saved
            .take()
            .ok_or_else(|| Fault::not_found("no config was saved with VERIFY_AND_SAVE"))?;
        self.adopt(saved.target);
        tracing::info!(device_id = self.device_id, "saved pipeline committed");
        Ok(())
    }

    /// Makes the state of a switch that got no packets that of the real one, at once for every
    /// packet.
    fn adopt(&self, trial: Target) {
        let target = self.live_target(trial.pipeline.clone(), trial.cookie);
        let blank = Switch::new(self.switch.lock().config().clone());
        let (state, switch) = {
            let (mut state, mut switch) = trial.lock();
            (
                std::mem::take(&mut *state),
                std::mem::replace(&mut *switch, blank),
            )
        };
        let (mut live_state, mut live_switch) = target.lock();
        live_switch.adopt(switch);
        let down = std::mem::take(&mut live_state.down);
        *live_state = State { down, ..state };
        settle_ports(&mut live_switch, &live_state);
        self.set_live(Some(target.clone()));
    }

    fn reconcile(
        &self,
        gate: &mut Gate,
        pipeline: Arc<Pipeline>,
        cookie: Option<u64>,
        role: &str,
    ) -> Result<(), Fault> {
        let Some(live) = self.live() else {
            self.commit(gate, pipeline, cookie);
            return Ok(());
        };
        if Arc::ptr_eq(&live.pipeline, &pipeline)
            || (live.pipeline.p4info == pipeline.p4info
                && live.pipeline.device_config == pipeline.device_config)
        {
            // The same program under the same names: the switch goes on undisturbed.
            gate.saved = None;
            self.set_live(Some(self.live_target(live.pipeline, cookie)));
            return Ok(());
        }
        let roles = lock(&self.clients).arbiter.role_names();
        let now = self.now();
        let pristine = self.scratch(&live.pipeline, None);
        let kept = reconcile::export(&live, &pristine, &roles, now)?;
        let trial = self.scratch(&pipeline, cookie);
        {
            let (mut state, mut switch) = trial.lock();
            let limits = self.limits();
            reconcile::replay(&trial.pipeline, &mut switch, &mut state, &kept, now, limits)?;
            keep_hashes(&self.switch.lock(), &mut switch);
        }
        gate.saved = None;
        self.adopt(trial);
        tracing::info!(
            device_id = self.device_id,
            role,
            kept = kept.len(),
            "forwarding pipeline reconciled"
        );
        Ok(())
    }

    /// The saved config if there is one, else the committed one.
    pub(super) fn get_pipeline(
        &self,
        gate: &Gate,
        response: ResponseType,
    ) -> Option<v1::ForwardingPipelineConfig> {
        let target = self.target(gate)?;
        let pipeline = &target.pipeline;
        let with_info = matches!(response, ResponseType::All | ResponseType::P4infoAndCookie);
        let with_device = matches!(
            response,
            ResponseType::All | ResponseType::DeviceConfigAndCookie
        );
        Some(v1::ForwardingPipelineConfig {
            p4info: with_info.then(|| pipeline.p4info.clone()),
            p4_device_config: if with_device {
                pipeline.device_config.clone()
            } else {
                Vec::new()
            },
            cookie: target.cookie.map(|cookie| Cookie { cookie }),
        })
    }
}

/// Carries the parameters of hashes over to another program, as far as it has them.
fn keep_hashes(from: &Switch, to: &mut Switch) {
    for hash in from.custom_hashes().unwrap_or_default() {
        let kept = to.set_custom_hash(&hash.name, hash.parameters);
        if let Err(error) = kept {
            tracing::info!("parameters of hash {} are let go: {error}", hash.name);
        }
    }
}

/// Starts the program anew; what ports are down outlives it.
fn restart(pipeline: &Pipeline, switch: &mut Switch, state: &mut State) {
    switch.install(pipeline.program.clone());
    *state = State {
        down: std::mem::take(&mut state.down),
        ..State::default()
    };
    settle_ports(switch, state);
}

/// Tells a switch with new state which ports are down, and groups and sessions to mind them.
fn settle_ports(switch: &mut Switch, state: &State) {
    for port in &state.down {
        switch.set_port_up(*port, false);
    }
    state.settle_backups(switch);
}
