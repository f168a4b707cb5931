//! Pipelines shared between switches of one process.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, Weak};

use p4runtime::config::v1 as config;

use super::fault::Fault;
use super::pipeline::Pipeline;
use super::state::lock;
use crate::ids::Port;

/// Loads every program once, however many switches run it. Cloning shares the cache; give the
/// same one to all the servers of a process. Programs that no switch runs any more are dropped.
#[derive(Clone, Default)]
pub struct PipelineCache(Arc<Mutex<HashMap<u64, Vec<Entry>>>>);

struct Entry {
    cpu_port: Option<Port>,
    pipeline: Weak<Pipeline>,
}

impl std::fmt::Debug for PipelineCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PipelineCache({} programs)", lock(&self.0).len())
    }
}

impl PipelineCache {
    /// The pipeline of this P4Info and device config, loaded if no switch has it yet.
    pub(crate) fn bind(
        &self,
        p4info: config::P4Info,
        device_config: Vec<u8>,
        cpu_port: Option<Port>,
    ) -> Result<Arc<Pipeline>, Fault> {
        let mut hasher = DefaultHasher::new();
        device_config.hash(&mut hasher);
        let key = hasher.finish();
        // Held while loading, so that hundreds of switches that start at once load it once.
        let mut cache = lock(&self.0);
        cache.retain(|_, entries| {
            entries.retain(|entry| entry.pipeline.strong_count() > 0);
            !entries.is_empty()
        });
        let entries = cache.entry(key).or_default();
        let known = entries.iter().filter(|e| e.cpu_port == cpu_port);
        let same = |p: &Arc<Pipeline>| p.device_config == device_config && p.p4info == p4info;
        if let Some(found) = known.filter_map(|e| e.pipeline.upgrade()).find(same) {
            return Ok(found);
        }
        let pipeline = Arc::new(Pipeline::bind(p4info, device_config, cpu_port)?);
        entries.push(Entry {
            cpu_port,
            pipeline: Arc::downgrade(&pipeline),
        });
        Ok(pipeline)
    }
}
