//! From the shape of a transformer to what its ranks exchange.
//!
//! With `b` sequences per micro-batch of `s` tokens, hidden size `h`, `e` bytes per activation, tensor and
//! context parallelism `t` and `c`, pipeline parallelism `p`, `v` interleaved stages per rank and `m`
//! micro-batches, one activation is `a = b s h e / c` bytes, and per rank and iteration:
//!
//! | exchange | operation | bytes | times |
//! |---|---|---|---|
//! | gradients | all-reduce over dp-cp (or reduce-scatter and all-gather when the optimizer is sharded) | parameters / (t p) x bytes per gradient | 1 |
//! | expert gradients | the same over expert-dp | expert parameters / (t p ep) x bytes per gradient | 1 |
//! | activations between stages | pipeline | a / t | m v each way |
//! | activations inside layers | all-reduce over tp | a | 4 layers / p x m |
//! | keys and values | all-gather over cp, forward and again backward; reduce-scatter of their gradients | 2 b s d e / t, with d the width of keys | layers / p x m |
//! | tokens to experts | all-to-all over ep: there and back, forward and backward | min(k, M) a / t | 4 MoE layers / p x m |

use super::exchange::{Exchange, Operation};
use super::grid::{Dimension, Grid, Over};
use super::job::Algorithm;

/// The shape of a transformer and of one training iteration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// Layers.
    pub layers: u64,
    /// Hidden size.
    pub hidden: u64,
    /// Tokens per sequence.
    pub sequence: u64,
    /// Size of the vocabulary; embedding and output share their matrix.
    pub vocabulary: u64,
    /// Inner size of the feed-forward layers.
    pub feed_forward: u64,
    /// Matrices of a feed-forward layer: 2, or 3 when it is gated.
    pub matrices: u64,
    /// Width of keys (and of values) together over their heads; `hidden` unless heads share them.
    pub keys: u64,
    /// Parameters outside the experts, where they are given and not to be counted from the shape.
    pub parameters: Option<u64>,
    /// Layers with experts.
    pub moe_layers: u64,
    /// Experts in each of them.
    pub experts: u64,
    /// Inner size of an expert.
    pub expert_size: u64,
    /// Experts that each token is sent to (k).
    pub top_k: u64,
    /// Hosts that the experts of one token may be on at most (M); a token is sent to each host once.
    pub node_limit: Option<u64>,
    /// Sequences per micro-batch.
    pub micro_batch_size: u64,
    /// Micro-batches per iteration (m).
    pub micro_batches: u64,
    /// Interleaved stages per rank (v).
    pub virtual_stages: u64,
    /// Bytes of an activation.
    pub activation_bytes: u64,
    /// Bytes of a gradient as it is reduced.
    pub gradient_bytes: u64,
    /// Bytes of a parameter as it is gathered.
    pub parameter_bytes: u64,
    /// Whether the optimizer's state is sharded: gradients are reduce-scattered and parameters gathered.
    pub sharded: bool,
    /// Whether ranks of one tensor group send only their part of an activation to the next stage, and
    /// their part of the tokens to experts.
    pub scatter: bool,
    /// How gradients are reduced.
    pub algorithm: Algorithm,
}

impl Model {
    /// Parameters outside the experts: attention `2 h h + 2 h d`, feed-forward `matrices h f` in the
    /// layers without experts, two norms of `2 h` per layer, and the embedding.
    #[must_use]
    pub fn dense_parameters(&self) -> u64 {
        self.parameters.unwrap_or_else(|| {
            let h = self.hidden;
            let attention = product(&[2, h, h + self.keys]).saturating_add(4 * h);
            let feed_forward = product(&[self.matrices, h, self.feed_forward]);
            product(&[self.layers, attention])
                .saturating_add(product(&[self.layers - self.moe_layers, feed_forward]))
                .saturating_add(product(&[self.vocabulary, h]))
        })
    }

    /// Parameters of all experts.
    #[must_use]
    pub fn expert_parameters(&self) -> u64 {
        product(&[
            self.moe_layers,
            self.experts,
            self.matrices,
            self.hidden,
            self.expert_size,
        ])
    }

    /// What the ranks of `grid` exchange in one iteration.
    #[must_use]
    pub fn exchanges(&self, grid: &Grid) -> Vec<Exchange> {
        let [tp, cp, pp] = [Dimension::Tensor, Dimension::Context, Dimension::Pipeline]
            .map(|d| u64::from(grid.size(d)));
        let ep = u64::from(grid.expert_size());
        let micro = self.micro_batches;
        let rows = product(&[self.micro_batch_size, self.sequence.div_ceil(cp)]);
        let activation = product(&[rows, self.hidden, self.activation_bytes]);
        let part = |bytes: u64| {
            if self.scatter {
                bytes.div_ceil(tp)
            } else {
                bytes
            }
        };
        let layers = self.layers.div_ceil(pp);
        let mut list = Vec::new();
        let mut put = |name: &str, operation, over, bytes: u64, times: u64| {
            if bytes > 0 && times > 0 && grid.group_size(over) > 1 {
                let mut exchange = Exchange::new(name, operation, over, bytes);
                exchange.times = times;
                list.push(exchange);
            }
        };
        let dense = self.dense_parameters().div_ceil(tp * pp);
        let experts = self.expert_parameters().div_ceil(tp * pp * ep);
        for (name, over, count) in [
            ("gradients", Over::DataContext, dense),
            ("expert-gradients", Over::ExpertData, experts),
        ] {
            if self.sharded {
                let parameters = name.replace("gradients", "parameters");
                put(
                    name,
                    Operation::ReduceScatter,
                    over,
                    product(&[count, self.gradient_bytes]),
                    1,
                );
                put(
                    &parameters,
                    Operation::AllGather,
                    over,
                    product(&[count, self.parameter_bytes]),
                    1,
                );
            } else {
                put(
                    name,
                    Operation::AllReduce,
                    over,
                    product(&[count, self.gradient_bytes]),
                    1,
                );
            }
        }
        put(
            "layers",
            Operation::AllReduce,
            Over::Tensor,
            activation,
            product(&[4, layers, micro]),
        );
        let keys = product(&[
            2,
            self.micro_batch_size,
            self.sequence,
            self.keys.div_ceil(tp),
            self.activation_bytes,
        ]);
        put(
            "keys",
            Operation::AllGather,
            Over::Context,
            keys,
            product(&[2, layers, micro]),
        );
        put(
            "key-gradients",
            Operation::ReduceScatter,
            Over::Context,
            keys,
            product(&[layers, micro]),
        );
        let copies = self
            .node_limit
            .map_or(self.top_k, |limit| limit.min(self.top_k));
        let moe = self.moe_layers.div_ceil(pp);
        put(
            "tokens",
            Operation::AllToAll,
            Over::Expert,
            product(&[copies, part(activation)]),
            product(&[4, moe, micro]),
        );
        put(
            "stages",
            Operation::Pipeline,
            Over::Pipeline,
            part(activation),
            product(&[micro, self.virtual_stages]),
        );
        for exchange in &mut list {
            if exchange.operation == Operation::Pipeline {
                exchange.wraps = product(&[micro, self.virtual_stages - 1]);
            }
            if matches!(exchange.over, Over::DataContext | Over::ExpertData) {
                exchange.algorithm = self.algorithm;
            }
        }
        list
    }
}

/// A product that stays at the largest number instead of passing it: whoever reads a file checks for that.
fn product(factors: &[u64]) -> u64 {
    factors
        .iter()
        .fold(1, |all, factor| all.saturating_mul(*factor))
}
