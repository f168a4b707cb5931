//! Job files of every form, as a [`Workload`].

use super::exchange::{Exchange, Operation, Workload};
use super::file::{JobError, MAX_BYTES, MAX_CHANNELS, count};
use super::grid::{Dimension, Grid, GridError, Over};
use super::job::{Algorithm, Job};
use super::model::Model;
use std::path::Path;
use topology::Report;
use topology::section::{Section, parse};

/// Most of anything that a model has or that an iteration repeats.
const MOST: u64 = 1 << 30;

const FIELDS: [&str; 13] = [
    "name",
    "hosts",
    "ranks_per_host",
    "world_size",
    "parallel",
    "scale_up",
    "channels",
    "nvlink_offload",
    "compute",
    "model",
    "micro_batches",
    "collectives",
    "overlap",
];

impl Workload {
    /// Reads a job file of any form.
    ///
    /// # Errors
    /// The file can't be read, or is wrong.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, JobError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|source| JobError::Read {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&path.display().to_string(), &text).map_err(JobError::Invalid)
    }

    /// Reads a job from text; `name` is for messages. A file with `collective` has one collective over
    /// all ranks, one with `parallel` has groups in several dimensions.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn parse(name: &str, text: &str) -> Result<Self, Report> {
        let single = Job::parse(name, text);
        if single.is_ok() || text.lines().any(|line| line.starts_with("collective:")) {
            return single.map(|job| Self::from(&job));
        }
        parse(name, text, "a job", &FIELDS, workload)
    }
}

fn optional<T>(
    section: &mut Section<'_, '_, '_>,
    field: &str,
    default: T,
    read: impl FnOnce(&mut Section<'_, '_, '_>, &str) -> Option<T>,
) -> Option<T> {
    if section.has(field) {
        read(section, field)
    } else {
        Some(default)
    }
}

fn workload(job: &mut Section<'_, '_, '_>) -> Option<Workload> {
    let name = job.name("name");
    let ranks_per_host = count(job, "ranks_per_host", 1 << 10);
    let grid = job.section(
        "parallel",
        "the parallel sizes",
        &["tp", "cp", "dp", "pp", "ep", "order"],
        grid,
    );
    let channels = if job.has("channels") {
        Some(count(job, "channels", MAX_CHANNELS)?)
    } else {
        None
    };
    let offload_ppm = optional(job, "nvlink_offload", 0, |s, f| s.share_ppm(f));
    let compute_ns = optional(job, "compute", 0, |s, f| s.duration_ns(f));
    let scale_up = optional(job, "scale_up", ranks_per_host?, |s, f| {
        count(s, f, 1 << 20)
    });
    let (grid, ranks_per_host) = (grid?, ranks_per_host?);
    sizes(job, &grid, ranks_per_host, scale_up?)?;
    let exchanges = match (job.has("model"), job.has("collectives")) {
        (true, false) => model(job, &grid),
        (false, _) => collectives(job, &grid),
        (true, true) => {
            job.reject(
                "collectives",
                "a job has a `model` or `collectives`, not both",
                "leave one of them out",
            );
            None
        }
    };
    let exchanges = exchanges?;
    volume(job, &grid, &exchanges)?;
    Some(Workload {
        name: name?,
        grid,
        ranks_per_host,
        scale_up: scale_up?,
        channels,
        offload_ppm: offload_ppm?,
        compute_ns: compute_ns?,
        exchanges,
    })
}

/// Checks what follows from several fields.
fn sizes(
    job: &mut Section<'_, '_, '_>,
    grid: &Grid,
    ranks_per_host: u32,
    scale_up: u32,
) -> Option<()> {
    let world = grid.world_size();
    if job.has("world_size") {
        let given = job.number("world_size")?;
        if given != world {
            let message = format!("`world_size` is {given}, and tp x cp x dp x pp is {world}");
            job.reject(
                "world_size",
                message,
                "leave it out, or make the product agree",
            );
            return None;
        }
    }
    if !world.is_multiple_of(ranks_per_host) {
        let message = format!("{world} ranks do not fill hosts of {ranks_per_host}");
        let help = "make `ranks_per_host` divide tp x cp x dp x pp";
        job.reject("ranks_per_host", message, help);
        return None;
    }
    if job.has("hosts") {
        let given = job.number("hosts")?;
        let hosts = world / ranks_per_host;
        if given != hosts {
            let message =
                format!("`hosts` is {given}, and {world} ranks by {ranks_per_host} need {hosts}");
            job.reject("hosts", message, format!("leave it out, or write {hosts}"));
            return None;
        }
    }
    if !scale_up.is_multiple_of(ranks_per_host) && !ranks_per_host.is_multiple_of(scale_up) {
        let message =
            format!("a scale-up domain of {scale_up} GPUs ends inside a host of {ranks_per_host}");
        job.reject(
            "scale_up",
            message,
            "write a multiple or a divisor of `ranks_per_host`",
        );
        return None;
    }
    Some(())
}

/// Most pairs of ranks that all-to-alls may have in all.
const MOST_PAIRS: u64 = 1 << 26;

/// Checks that sums fit 64 bits, and that all-to-alls can be counted.
fn volume(job: &mut Section<'_, '_, '_>, grid: &Grid, exchanges: &[Exchange]) -> Option<()> {
    let field = if job.has("model") {
        "model"
    } else {
        "collectives"
    };
    let world = u128::from(grid.world_size());
    let total: u128 = exchanges
        .iter()
        .map(|e| u128::from(e.bytes) * u128::from(e.times.max(e.wraps)) * 4 * world)
        .fold(0, u128::saturating_add);
    if total > u128::from(u64::MAX) {
        let message = "all ranks together send more than 2^64 bytes in an iteration";
        job.reject(field, message, "lower sizes, `times` or `micro_batches`");
        return None;
    }
    let all_to_all = exchanges
        .iter()
        .filter(|e| e.operation == Operation::AllToAll);
    for exchange in all_to_all {
        let pairs = u64::from(grid.world_size()) * u64::from(grid.group_size(exchange.over));
        if pairs > MOST_PAIRS {
            let message = format!(
                "`{}` is an all-to-all of {pairs} pairs of ranks",
                exchange.name
            );
            job.reject(
                field,
                message,
                format!("at most {MOST_PAIRS} are counted: make its groups smaller"),
            );
            return None;
        }
    }
    Some(())
}

fn grid(section: &mut Section<'_, '_, '_>) -> Option<Grid> {
    let mut size = |field| optional(section, field, 1, |s, f| s.number(f));
    let [tp, cp, dp, pp, ep] = ["tp", "cp", "dp", "pp", "ep"].map(&mut size);
    let made = Grid::new(tp?, cp?, dp?, pp?, ep?);
    let grid = made.map_err(|error| reject_grid(section, &error)).ok()?;
    if !section.has("order") {
        return Some(grid);
    }
    let order = section.choices("order", &Dimension::NAMES)?;
    grid.ordered(&order)
        .map_err(|error| reject_grid(section, &error))
        .ok()
}

fn reject_grid(section: &mut Section<'_, '_, '_>, error: &GridError) {
    let (field, help) = match error {
        GridError::Size { field, most, .. } => (*field, format!("write a number from 1 to {most}")),
        GridError::Expert { dp, .. } => ("ep", format!("write a divisor of {dp}")),
        GridError::Order { .. } => ("order", "like [tp, cp, dp, pp]".to_owned()),
    };
    section.reject(field, error.to_string(), help);
}

fn big(section: &mut Section<'_, '_, '_>, field: &str, least: u64, most: u64) -> Option<u64> {
    let value = section.big_number(field)?;
    if !(least..=most).contains(&value) {
        let message = format!("`{field}` is {value}");
        section.reject(
            field,
            message,
            format!("write a number from {least} to {most}"),
        );
        return None;
    }
    Some(value)
}

const MODEL_FIELDS: [&str; 20] = [
    "layers",
    "hidden",
    "sequence",
    "vocabulary",
    "feed_forward",
    "gated",
    "keys",
    "parameters",
    "moe_layers",
    "experts",
    "expert_size",
    "top_k",
    "node_limit",
    "micro_batch_size",
    "virtual_stages",
    "activation_bytes",
    "gradient_bytes",
    "parameter_bytes",
    "sharded_optimizer",
    "algorithm",
];

fn model(job: &mut Section<'_, '_, '_>, grid: &Grid) -> Option<Vec<Exchange>> {
    let micro_batches = optional(job, "micro_batches", 1, |s, f| big(s, f, 1, MOST));
    let overlap = if job.has("overlap") {
        job.section(
            "overlap",
            "the overlap",
            &Over::NAMES.map(|(name, _)| name),
            |section| {
                let mut list = Vec::new();
                for (name, over) in Over::NAMES {
                    if section.has(name) {
                        list.push((over, section.share_ppm(name)?));
                    }
                }
                Some(list)
            },
        )
    } else {
        Some(Vec::new())
    };
    let known: Vec<&str> = MODEL_FIELDS.iter().copied().chain(["scatter"]).collect();
    let model = job.section("model", "a model", &known, |s| shape(s, grid));
    let model = Model {
        micro_batches: micro_batches?,
        ..model?
    };
    let mut exchanges = model.exchanges(grid);
    for (over, ppm) in overlap? {
        let mut alike = exchanges
            .iter_mut()
            .filter(|e| e.over == over || (over == Over::Data && e.over == Over::DataContext));
        alike.by_ref().for_each(|e| e.overlap_ppm = ppm);
    }
    Some(exchanges)
}

fn shape(s: &mut Section<'_, '_, '_>, grid: &Grid) -> Option<Model> {
    let layers = big(s, "layers", 1, 1 << 16);
    let hidden = big(s, "hidden", 1, 1 << 20);
    let sequence = big(s, "sequence", 1, 1 << 26);
    let count = |s: &mut Section<'_, '_, '_>, field, default, most| {
        optional(s, field, default, |s, f| big(s, f, 1, most))
    };
    let vocabulary = optional(s, "vocabulary", 0, |s, f| big(s, f, 0, MOST));
    let feed_forward = count(s, "feed_forward", 4 * hidden?, 1 << 24);
    let keys = count(s, "keys", hidden?, 1 << 20);
    let gated = optional(s, "gated", false, |s, f| s.boolean(f));
    let parameters = if s.has("parameters") {
        Some(big(s, "parameters", 1, 1 << 50)?)
    } else {
        None
    };
    let moe_layers = optional(s, "moe_layers", 0, |s, f| big(s, f, 0, layers?));
    let experts = optional(s, "experts", 0, |s, f| big(s, f, 0, 1 << 20));
    let expert_size = count(s, "expert_size", feed_forward?, 1 << 24);
    let top_k = count(s, "top_k", 1, experts?.max(1));
    let node_limit = if s.has("node_limit") {
        Some(big(s, "node_limit", 1, 1 << 20)?)
    } else {
        None
    };
    if moe_layers? > 0 && experts? == 0 {
        s.reject(
            "moe_layers",
            "layers with experts, and no `experts`",
            "add `experts: ...`",
        );
        return None;
    }
    if experts? > 0 && !experts?.is_multiple_of(grid.expert_size().into()) {
        let message = format!(
            "{} experts do not share out over `ep`, which is {}",
            experts?,
            grid.expert_size()
        );
        s.reject("experts", message, "make `ep` divide `experts`");
        return None;
    }
    if layers? < u64::from(grid.size(Dimension::Pipeline)) {
        let message = format!(
            "{} layers and {} pipeline stages",
            layers?,
            grid.size(Dimension::Pipeline)
        );
        s.reject(
            "layers",
            message,
            "no stage can be without a layer: lower `pp`",
        );
        return None;
    }
    Some(Model {
        layers: layers?,
        hidden: hidden?,
        sequence: sequence?,
        vocabulary: vocabulary?,
        feed_forward: feed_forward?,
        matrices: if gated? { 3 } else { 2 },
        keys: keys?,
        parameters,
        moe_layers: moe_layers?,
        experts: experts?,
        expert_size: expert_size?,
        top_k: top_k?,
        node_limit,
        micro_batch_size: count(s, "micro_batch_size", 1, 1 << 20)?,
        micro_batches: 1,
        virtual_stages: count(s, "virtual_stages", 1, 1 << 10)?,
        activation_bytes: count(s, "activation_bytes", 2, 8)?,
        gradient_bytes: count(s, "gradient_bytes", 2, 8)?,
        parameter_bytes: count(s, "parameter_bytes", 2, 8)?,
        sharded: optional(s, "sharded_optimizer", false, |s, f| s.boolean(f))?,
        scatter: optional(s, "scatter", true, |s, f| s.boolean(f))?,
        algorithm: optional(s, "algorithm", Algorithm::Ring, |s, f| {
            s.choice(f, &Algorithm::NAMES)
        })?,
    })
}

const COLLECTIVE_FIELDS: [&str; 9] = [
    "name",
    "kind",
    "over",
    "algorithm",
    "bytes_per_rank",
    "times",
    "wraps",
    "rail_aligned",
    "overlap",
];

fn collectives(job: &mut Section<'_, '_, '_>, grid: &Grid) -> Option<Vec<Exchange>> {
    let mut index = 0;
    job.sections(
        "collectives",
        "a collective",
        &COLLECTIVE_FIELDS,
        |section| {
            index += 1;
            collective(section, grid, index)
        },
    )
}

fn collective(s: &mut Section<'_, '_, '_>, grid: &Grid, index: usize) -> Option<Exchange> {
    let name = optional(s, "name", format!("collective-{index}"), |s, f| s.name(f));
    let operation = s.choice("kind", &Operation::NAMES);
    let over = optional(s, "over", Over::World, |s, f| s.choice(f, &Over::NAMES));
    let algorithm = optional(s, "algorithm", Algorithm::Ring, |s, f| {
        s.choice(f, &Algorithm::NAMES)
    });
    let bytes = s.size("bytes_per_rank");
    if bytes.is_some_and(|bytes| !(1..=MAX_BYTES).contains(&bytes)) {
        let message = "an array has at least one byte and at most a petabyte";
        s.reject("bytes_per_rank", message, "write its size, like 16MiB");
        return None;
    }
    let times = optional(s, "times", 1, |s, f| big(s, f, 1, MOST));
    let wraps = optional(s, "wraps", 0, |s, f| big(s, f, 0, MOST));
    let rail_aligned = optional(s, "rail_aligned", true, |s, f| s.boolean(f));
    let overlap_ppm = optional(s, "overlap", 0, |s, f| s.share_ppm(f));
    if grid.group_size(over?) < 2 {
        let message = format!("`over` is {}, whose groups have one rank", over?.name());
        s.reject(
            "over",
            message,
            "give that dimension a size in `parallel`, or leave this out",
        );
        return None;
    }
    if (operation? == Operation::Pipeline) != (over? == Over::Pipeline) {
        let message = "`kind: pipeline` goes with `over: pp`, and nothing else does";
        s.reject("kind", message, "change one of the two");
        return None;
    }
    let mut exchange = Exchange::new(&name?, operation?, over?, bytes?);
    exchange.algorithm = algorithm?;
    exchange.times = times?;
    exchange.wraps = wraps?;
    exchange.rail_aligned = rail_aligned?;
    exchange.overlap_ppm = overlap_ppm?;
    Some(exchange)
}
