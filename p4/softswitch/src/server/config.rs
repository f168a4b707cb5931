//! Setting and getting the forwarding pipeline (P4Runtime, "SetForwardingPipelineConfig RPC" and
//! "GetForwardingPipelineConfig RPC").

use std::sync::{Arc, Mutex};

use p4runtime::rpc::Code;
use p4runtime::v1::{
    self, forwarding_pipeline_config::Cookie, get_forwarding_pipeline_config_request::ResponseType,
    set_forwarding_pipeline_config_request::Action, write_request::Atomicity,
};

use super::fault::Fault;
use super::pipeline::Pipeline;
use super::reconcile;
use super::roles::Scope;
use super::state::{State, Target, lock};
use super::write::{Author, write_batch};
use super::{Gate, Shared};
use crate::switch::Switch;

/// A pipeline that was saved and not committed yet. Reads and writes refer to it: they go to a
/// switch of its own that gets no packets, and the writes are kept for the commit.
pub(crate) struct Saved {
    pub(crate) target: Target,
    pub(crate) log: Vec<(String, v1::Update)>,
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
        self.config
            .pipelines
            .bind(p4info, config.p4_device_config, self.cpu_port)
    }

    /// A switch like this one that gets no packets.
    fn scratch(&self, pipeline: &Arc<Pipeline>, cookie: Option<u64>) -> Target {
        let mut switch = Switch::new(lock(&self.switch).config().clone());
        switch.install(pipeline.program.clone());
        let down = lock(&self.state).down.clone();
        let state = State {
            down,
            ..State::default()
        };
        Target {
            pipeline: pipeline.clone(),
            cookie,
            switch: Arc::new(Mutex::new(switch)),
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
        gate.saved = Some(Saved {
            target,
            log: Vec::new(),
        });
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
        self.commit(gate, saved.target.pipeline.clone(), saved.target.cookie);
        let target = self.live_target(saved.target.pipeline, saved.target.cookie);
        let now = self.now();
        for (role, update) in saved.log {
            let author = Author {
                role: &role,
                scope: &Scope::default(),
                now,
            };
            let results = write_batch(&target, &author, &[update], Atomicity::ContinueOnError);
            if let Some(Err(fault)) = results.first() {
                // It was accepted for the saved config, so this is a fault of ours.
                return Err(Fault::new(
                    Code::Internal,
                    format!("an update since VERIFY_AND_SAVE cannot be replayed: {fault}"),
                ));
            }
        }
        Ok(())
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
        let roles = lock(&self.clients).arbiter.role_names();
        let now = self.now();
        let kept = reconcile::export(&live, &roles, now)?;
        let trial = self.scratch(&pipeline, cookie);
        {
            let (mut state, mut switch) = trial.lock();
            reconcile::replay(&trial.pipeline, &mut switch, &mut state, &kept, now)?;
        }
        gate.saved = None;
        let target = self.live_target(pipeline, cookie);
        if target.pipeline.device_config == live.pipeline.device_config {
            // The same program: the switch goes on undisturbed under new names.
            self.set_live(Some(target));
        } else {
            let (mut state, mut switch) = target.lock();
            restart(&target.pipeline, &mut switch, &mut state);
            reconcile::replay(&target.pipeline, &mut switch, &mut state, &kept, now)?;
            self.set_live(Some(target.clone()));
        }
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

/// Starts the program anew; what ports are down outlives it.
fn restart(pipeline: &Pipeline, switch: &mut Switch, state: &mut State) {
    switch.install(pipeline.program.clone());
    *state = State {
        down: std::mem::take(&mut state.down),
        ..State::default()
    };
    for port in &state.down {
        switch.set_port_up(*port, false);
    }
}
