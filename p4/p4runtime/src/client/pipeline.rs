//! Which P4 program a switch runs (specification section 7).

use prost::Message as _;

use super::{Error, Session};
use crate::config::v1::P4Info;
use crate::v1::{
    ForwardingPipelineConfig, GetForwardingPipelineConfigRequest,
    SetForwardingPipelineConfigRequest, forwarding_pipeline_config::Cookie,
    get_forwarding_pipeline_config_request::ResponseType,
    set_forwarding_pipeline_config_request::Action,
};

/// A P4 program for a switch.
#[derive(Debug, Clone, PartialEq)]
pub struct Pipeline {
    /// Its interface.
    pub p4info: P4Info,
    /// What the switch runs; for bmv2 and the softswitch p4c's JSON.
    pub device_config: Vec<u8>,
    /// Identifies the two. 0 stands for none.
    pub cookie: u64,
}

impl Pipeline {
    /// A program whose cookie is [`cookie`] of its contents.
    #[must_use]
    pub fn new(p4info: P4Info, device_config: Vec<u8>) -> Self {
        let cookie = cookie(&p4info, &device_config);
        Pipeline {
            p4info,
            device_config,
            cookie,
        }
    }

    fn proto(&self) -> ForwardingPipelineConfig {
        let cookie = self.cookie;
        ForwardingPipelineConfig {
            p4info: Some(self.p4info.clone()),
            p4_device_config: self.device_config.clone(),
            cookie: (cookie != 0).then_some(Cookie { cookie }),
        }
    }
}

/// A number that differs, in all likelihood, for different programs (FNV-1a, 64
/// bits); never 0. It tells whether a push is needed, and protects from nothing.
#[must_use]
pub fn cookie(p4info: &P4Info, device_config: &[u8]) -> u64 {
    let info = p4info.encode_to_vec();
    let bytes = info.iter().chain(device_config);
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    hash.max(1)
}

impl Session {
    /// Asks whether the switch would run the program; nothing changes.
    ///
    /// # Errors
    /// [`Error::Rpc`] with the switch's reason; so do the calls below.
    pub async fn verify(&self, pipeline: &Pipeline) -> Result<(), Error> {
        self.set_pipeline(Action::Verify, Some(pipeline)).await
    }

    /// Has the switch keep the program for [`commit`](Self::commit). Switches
    /// may refuse other programs until then.
    ///
    /// # Errors
    /// As [`verify`](Self::verify).
    pub async fn save(&self, pipeline: &Pipeline) -> Result<(), Error> {
        self.set_pipeline(Action::VerifyAndSave, Some(pipeline))
            .await
    }

    /// Starts the program that was saved.
    ///
    /// # Errors
    /// As [`verify`](Self::verify).
    pub async fn commit(&self) -> Result<(), Error> {
        self.set_pipeline(Action::Commit, None).await
    }

    /// Starts the program with empty tables.
    ///
    /// # Errors
    /// As [`verify`](Self::verify).
    pub async fn verify_and_commit(&self, pipeline: &Pipeline) -> Result<(), Error> {
        self.set_pipeline(Action::VerifyAndCommit, Some(pipeline))
            .await
    }

    /// Starts the program and keeps the entries that it still has a place for.
    /// Many switches answer `UNIMPLEMENTED`; bmv2 fails for programs with
    /// counters or meters and is then left in the middle of the change.
    ///
    /// # Errors
    /// As [`verify`](Self::verify).
    pub async fn reconcile_and_commit(&self, pipeline: &Pipeline) -> Result<(), Error> {
        self.set_pipeline(Action::ReconcileAndCommit, Some(pipeline))
            .await
    }

    /// Any of the actions above.
    ///
    /// # Errors
    /// As [`verify`](Self::verify).
    pub async fn set_pipeline(
        &self,
        action: Action,
        pipeline: Option<&Pipeline>,
    ) -> Result<(), Error> {
        let request = SetForwardingPipelineConfigRequest {
            device_id: self.config.device_id,
            role: self.config.role_name(),
            election_id: self.election(),
            action: action.into(),
            config: pipeline.map(Pipeline::proto),
            ..Default::default()
        };
        let request = self.request(request);
        let response = self
            .client
            .clone()
            .set_forwarding_pipeline_config(request)
            .await;
        let response =
            response.map_err(|status| self.rpc_error("SetForwardingPipelineConfig", status));
        response.map(drop)
    }

    /// The program that the switch runs, `None` if there is none. (bmv2 answers
    /// `FAILED_PRECONDITION` where the specification says: unset.)
    ///
    /// # Errors
    /// [`Error::Rpc`].
    pub async fn pipeline(&self) -> Result<Option<Pipeline>, Error> {
        let config = self.get_pipeline(ResponseType::All).await?;
        Ok(config.and_then(|config| {
            Some(Pipeline {
                p4info: config.p4info?,
                device_config: config.p4_device_config,
                cookie: config.cookie.map_or(0, |cookie| cookie.cookie),
            })
        }))
    }

    /// The cookie of the program that the switch runs; `None` when there is no
    /// program, or none with a cookie.
    ///
    /// # Errors
    /// [`Error::Rpc`].
    pub async fn pipeline_cookie(&self) -> Result<Option<u64>, Error> {
        let config = self.get_pipeline(ResponseType::CookieOnly).await?;
        Ok(config
            .and_then(|config| config.cookie)
            .map(|cookie| cookie.cookie))
    }

    /// As much of the program as is asked for.
    ///
    /// # Errors
    /// [`Error::Rpc`].
    pub async fn get_pipeline(
        &self,
        response_type: ResponseType,
    ) -> Result<Option<ForwardingPipelineConfig>, Error> {
        let request = self.request(GetForwardingPipelineConfigRequest {
            device_id: self.config.device_id,
            response_type: response_type.into(),
        });
        match self
            .client
            .clone()
            .get_forwarding_pipeline_config(request)
            .await
        {
            Ok(response) => Ok(response.into_inner().config),
            Err(status) if status.code() == tonic::Code::FailedPrecondition => Ok(None),
            Err(status) => Err(self.rpc_error("GetForwardingPipelineConfig", status)),
        }
    }
}
