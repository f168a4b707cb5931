//! How a job's ranks are laid out: parallel dimensions, their sizes and their order.

/// A parallel dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dimension {
    /// Tensor parallelism: a layer's matrices are split.
    Tensor,
    /// Context parallelism: a sequence is split.
    Context,
    /// Data parallelism: the batch is split.
    Data,
    /// Pipeline parallelism: the layers are split.
    Pipeline,
}

impl Dimension {
    /// All dimensions with their names in job files, in the usual order from the innermost out.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("tp", Self::Tensor),
        ("cp", Self::Context),
        ("dp", Self::Data),
        ("pp", Self::Pipeline),
    ];

    /// The name in job files.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize].0
    }
}

/// The ranks that one exchange runs over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Over {
    /// All ranks.
    World,
    /// The ranks that split a layer.
    Tensor,
    /// The ranks that split a sequence.
    Context,
    /// The ranks that split the batch.
    Data,
    /// Data and context together: all that hold the same parameters.
    DataContext,
    /// The stages of a pipeline.
    Pipeline,
    /// The ranks that share out the experts: runs of `ep` neighbours in the data dimension.
    Expert,
    /// The ranks that hold the same experts: every `ep`-th of the data dimension.
    ExpertData,
}

impl Over {
    /// All of them, with their names in job files.
    pub const NAMES: [(&'static str, Self); 8] = [
        ("world", Self::World),
        ("tp", Self::Tensor),
        ("cp", Self::Context),
        ("dp", Self::Data),
        ("dp-cp", Self::DataContext),
        ("pp", Self::Pipeline),
        ("ep", Self::Expert),
        ("expert-dp", Self::ExpertData),
    ];

    /// The name in job files.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize].0
    }
}

/// Why sizes make no grid. The messages name the field of a job file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GridError {
    /// A size is zero, or the ranks are too many.
    #[error("`{field}` is {size}: write a number from 1 to {most}")]
    Size {
        /// The field.
        field: &'static str,
        /// What it is.
        size: u32,
        /// The largest that fits with the others.
        most: u32,
    },
    /// The experts' groups do not divide the data dimension.
    #[error(
        "`ep` is {ep} and does not divide `dp`, which is {dp}: experts are shared out within the data dimension"
    )]
    Expert {
        /// Ranks that share out the experts.
        ep: u32,
        /// Size of the data dimension.
        dp: u32,
    },
    /// A dimension is missing from the order or there twice.
    #[error(
        "`order` has `{dimension}` {times} times: name each of tp, cp, dp and pp once, the innermost first"
    )]
    Order {
        /// The dimension.
        dimension: &'static str,
        /// How often it is there.
        times: usize,
    },
}

/// Most ranks of a job.
pub const MAX_RANKS: u32 = 1 << 22;

/// Sizes of the dimensions, and how ranks are numbered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// By [`Dimension`].
    sizes: [u32; 4],
    ep: u32,
    /// Innermost first: the first dimension's coordinate changes from each rank to the next.
    order: [Dimension; 4],
}

impl Grid {
    /// A grid of these sizes; ranks count in the order tp, cp, dp, pp, the innermost first.
    ///
    /// # Errors
    /// A size of zero, too many ranks, `ep` that does not divide `dp`.
    pub fn new(tp: u32, cp: u32, dp: u32, pp: u32, ep: u32) -> Result<Self, GridError> {
        let mut ranks = 1u32;
        for (field, size) in [("tp", tp), ("cp", cp), ("dp", dp), ("pp", pp)] {
            let most = MAX_RANKS / ranks;
            if !(1..=most).contains(&size) {
                return Err(GridError::Size { field, size, most });
            }
            ranks *= size;
        }
        if ep == 0 || ep > dp {
            return Err(GridError::Size {
                field: "ep",
                size: ep,
                most: dp,
            });
        }
        if !dp.is_multiple_of(ep) {
            return Err(GridError::Expert { ep, dp });
        }
        Ok(Self {
            sizes: [tp, cp, dp, pp],
            ep,
            order: Dimension::NAMES.map(|(_, dimension)| dimension),
        })
    }

    /// Data-parallel ranks only.
    #[must_use]
    pub fn flat(ranks: u32) -> Self {
        Self {
            sizes: [1, 1, ranks.max(1), 1],
            ep: 1,
            order: Dimension::NAMES.map(|(_, dimension)| dimension),
        }
    }

    /// The same sizes with ranks counted in another order, the innermost first.
    ///
    /// # Errors
    /// Not every dimension exactly once. Dimensions of size 1 may be left out.
    pub fn ordered(mut self, order: &[Dimension]) -> Result<Self, GridError> {
        let mut full = order.to_vec();
        for (name, dimension) in Dimension::NAMES {
            let times = order.iter().filter(|d| **d == dimension).count();
            if times == 0 && self.size(dimension) == 1 {
                full.push(dimension);
            } else if times != 1 {
                return Err(GridError::Order {
                    dimension: name,
                    times,
                });
            }
        }
        self.order.copy_from_slice(&full);
        Ok(self)
    }

    /// Size of a dimension.
    #[must_use]
    pub fn size(&self, dimension: Dimension) -> u32 {
        self.sizes[dimension as usize]
    }

    /// Ranks that share out the experts.
    #[must_use]
    pub fn expert_size(&self) -> u32 {
        self.ep
    }

    /// Dimensions as ranks count through them, the innermost first.
    #[must_use]
    pub fn order(&self) -> &[Dimension] {
        &self.order
    }

    /// Number of ranks.
    #[must_use]
    pub fn world_size(&self) -> u32 {
        self.sizes.iter().product()
    }

    /// Ranks between neighbours in a dimension.
    #[must_use]
    pub fn stride(&self, dimension: Dimension) -> u32 {
        let inner = self.order.iter().take_while(|d| **d != dimension);
        inner.map(|d| self.size(*d)).product()
    }

    /// A rank's coordinate in a dimension.
    #[must_use]
    pub fn coordinate(&self, rank: u32, dimension: Dimension) -> u32 {
        rank / self.stride(dimension) % self.size(dimension)
    }

    /// Members of each group of an exchange.
    #[must_use]
    pub fn group_size(&self, over: Over) -> u32 {
        let size = |dimension| self.size(dimension);
        match over {
            Over::World => self.world_size(),
            Over::Tensor => size(Dimension::Tensor),
            Over::Context => size(Dimension::Context),
            Over::Data => size(Dimension::Data),
            Over::DataContext => size(Dimension::Data) * size(Dimension::Context),
            Over::Pipeline => size(Dimension::Pipeline),
            Over::Expert => self.ep,
            Over::ExpertData => size(Dimension::Data) / self.ep,
        }
    }

    /// The ranks of every group of an exchange: groups by their lowest rank, ranks in ascending order;
    /// pipelines in order of their stages. Every rank is in exactly one group.
    #[must_use]
    pub fn groups(&self, over: Over) -> Vec<Vec<u32>> {
        let size = self.group_size(over) as usize;
        let groups = self.world_size() as usize / size.max(1);
        let mut index = rustc_hash::FxHashMap::default();
        let mut list: Vec<Vec<u32>> = Vec::with_capacity(groups);
        for rank in 0..self.world_size() {
            let at = *index.entry(self.label(rank, over)).or_insert_with(|| {
                list.push(Vec::with_capacity(size));
                list.len() - 1
            });
            list[at].push(rank);
        }
        list
    }

    /// What the members of a group have in common.
    fn label(&self, rank: u32, over: Over) -> (u32, u32) {
        let without = |dimensions: &[Dimension]| {
            let mut rest = rank;
            for d in dimensions {
                rest -= self.coordinate(rank, *d) * self.stride(*d);
            }
            rest
        };
        let data = self.coordinate(rank, Dimension::Data);
        match over {
            Over::World => (0, 0),
            Over::Tensor => (without(&[Dimension::Tensor]), 0),
            Over::Context => (without(&[Dimension::Context]), 0),
            Over::Data => (without(&[Dimension::Data]), 0),
            Over::DataContext => (without(&[Dimension::Data, Dimension::Context]), 0),
            Over::Pipeline => (without(&[Dimension::Pipeline]), 0),
            Over::Expert => (without(&[Dimension::Data]), data / self.ep),
            Over::ExpertData => (without(&[Dimension::Data]), data % self.ep),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranks_count_from_the_inside_out() {
        let grid = Grid::new(8, 1, 16, 8, 1).unwrap();
        assert_eq!(grid.world_size(), 1024);
        assert_eq!(grid.groups(Over::Tensor)[1], (8..16).collect::<Vec<_>>());
        assert_eq!(grid.groups(Over::Data)[3][..3], [3, 11, 19]);
        assert_eq!(grid.groups(Over::Pipeline)[0][..3], [0, 128, 256]);
        let outside = Grid::new(8, 1, 16, 8, 1).unwrap();
        let order = [Dimension::Tensor, Dimension::Pipeline, Dimension::Data];
        let outside = outside.ordered(&order).unwrap();
        assert_eq!(outside.groups(Over::Pipeline)[0][..3], [0, 8, 16]);
        assert_eq!(outside.groups(Over::Data)[0][..3], [0, 64, 128]);
    }

    #[test]
    fn experts_share_out_the_data_dimension() {
        let grid = Grid::new(2, 1, 8, 1, 4).unwrap();
        assert_eq!(grid.groups(Over::Expert)[0], [0, 2, 4, 6]);
        assert_eq!(grid.groups(Over::ExpertData)[0], [0, 8]);
    }

    #[test]
    fn what_is_impossible_names_the_field() {
        let text = |r: Result<Grid, GridError>| r.unwrap_err().to_string();
        assert!(text(Grid::new(0, 1, 1, 1, 1)).contains("`tp` is 0"));
        assert!(text(Grid::new(1, 1, 6, 1, 4)).contains("`ep` is 4"));
        assert!(text(Grid::new(1 << 20, 1, 1 << 20, 1, 1)).contains("`dp`"));
        let twice = [Dimension::Tensor, Dimension::Tensor];
        let order = Grid::new(2, 1, 1, 1, 1).unwrap().ordered(&twice);
        assert!(text(order).contains("`tp` 2 times"));
    }

    proptest! {
        #[test]
        fn every_rank_is_in_one_group_of_each_kind(
            tp in 1u32..5, cp in 1u32..3, ep in 1u32..4, edp in 1u32..4, pp in 1u32..4, flip: bool,
        ) {
            let mut grid = Grid::new(tp, cp, ep * edp, pp, ep).unwrap();
            if flip {
                let order = [Dimension::Pipeline, Dimension::Data, Dimension::Tensor, Dimension::Context];
                grid = grid.ordered(&order).unwrap();
            }
            for (_, over) in Over::NAMES {
                let groups = grid.groups(over);
                prop_assert!(groups.iter().all(|g| g.len() == grid.group_size(over) as usize));
                let mut all: Vec<u32> = groups.into_iter().flatten().collect();
                all.sort_unstable();
                prop_assert_eq!(all, (0..grid.world_size()).collect::<Vec<_>>());
            }
        }
    }
}
