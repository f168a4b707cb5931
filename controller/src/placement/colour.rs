//! Even colouring of bipartite multigraphs: the exact answer for leaf-spine fabrics.
//!
//! Flows are edges from a source leaf to a destination leaf, and spines are colours. König's theorem
//! says that a bipartite multigraph of degree `d` has a proper colouring with `d` colours. Cutting every
//! vertex into pieces of at most `m` edges makes the degree `m`, so `m` colours suffice, and a vertex of
//! degree `d` then carries each colour at most `ceil(d / m)` times: no assignment of equal flows to
//! `m` equal spines can do better.

const NONE: u32 = u32::MAX;

/// Colours of `edges` (left vertex, right vertex) with colours `0..colours`, so that no vertex has more
/// than `ceil(degree / colours)` edges of one colour. Colours that are used less are taken first.
/// Without colours the result is empty.
#[must_use]
pub fn colour(edges: &[(u32, u32)], colours: u32) -> Vec<u32> {
    if colours == 0 {
        return Vec::new();
    }
    let left = pieces(edges.iter().map(|e| e.0), colours);
    let right = pieces(edges.iter().map(|e| e.1), colours);
    let mut painter = Painter {
        colours,
        ends: left.0.iter().zip(&right.0).map(|(l, r)| [*l, *r]).collect(),
        at: [
            vec![NONE; left.1 * colours as usize],
            vec![NONE; right.1 * colours as usize],
        ],
        colour_of: vec![NONE; edges.len()],
        used: vec![0; colours as usize],
    };
    for edge in 0..edges.len() {
        painter.paint(edge);
    }
    painter.colour_of
}

/// Cuts every vertex into pieces of at most `size` edges: the piece of each edge, and their number.
fn pieces(vertices: impl Iterator<Item = u32>, size: u32) -> (Vec<u32>, usize) {
    let mut open: std::collections::BTreeMap<u32, (u32, u32)> = std::collections::BTreeMap::new();
    let mut count = 0u32;
    let mut fresh = || {
        count += 1;
        count - 1
    };
    let mut list = Vec::new();
    for vertex in vertices {
        let (piece, used) = open.entry(vertex).or_insert_with(|| (fresh(), 0));
        if *used == size {
            (*piece, *used) = (fresh(), 0);
        }
        *used += 1;
        list.push(*piece);
    }
    (list, count as usize)
}

struct Painter {
    colours: u32,
    /// Left and right piece of each edge.
    ends: Vec<[u32; 2]>,
    /// By side: the edge of a colour at a piece.
    at: [Vec<u32>; 2],
    colour_of: Vec<u32>,
    used: Vec<u32>,
}

impl Painter {
    fn slot(&self, piece: u32, colour: u32) -> usize {
        piece as usize * self.colours as usize + colour as usize
    }

    fn free(&self, side: usize, piece: u32, colour: u32) -> bool {
        self.at[side][self.slot(piece, colour)] == NONE
    }

    fn set(&mut self, edge: usize, colour: u32) {
        for side in 0..2 {
            let slot = self.slot(self.ends[edge][side], colour);
            self.at[side][slot] = edge as u32;
        }
        self.colour_of[edge] = colour;
        self.used[colour as usize] += 1;
    }

    fn clear(&mut self, edge: usize) {
        let colour = self.colour_of[edge];
        for side in 0..2 {
            let slot = self.slot(self.ends[edge][side], colour);
            self.at[side][slot] = NONE;
        }
        self.used[colour as usize] -= 1;
    }

    fn paint(&mut self, edge: usize) {
        let [l, r] = self.ends[edge];
        let least = |free: &dyn Fn(u32) -> bool| {
            (0..self.colours)
                .filter(|c| free(*c))
                .min_by_key(|c| self.used[*c as usize])
        };
        if let Some(both) = least(&|c| self.free(0, l, c) && self.free(1, r, c)) {
            self.set(edge, both);
            return;
        }
        // A piece has at most `colours` edges, this one included, so each side has a free colour.
        let (Some(a), Some(b)) = (
            least(&|c| self.free(0, l, c)),
            least(&|c| self.free(1, r, c)),
        ) else {
            return;
        };
        // `a` is taken at the right end: swap `a` and `b` along the path that starts there. It cannot
        // come back to the left end, where `a` is free.
        let mut path = Vec::new();
        let (mut side, mut piece, mut wanted) = (1, r, a);
        loop {
            let next = self.at[side][self.slot(piece, wanted)];
            if next == NONE {
                break;
            }
            path.push(next as usize);
            side = 1 - side;
            piece = self.ends[next as usize][side];
            wanted = if wanted == a { b } else { a };
        }
        let before: Vec<u32> = path.iter().map(|e| self.colour_of[*e]).collect();
        for e in &path {
            self.clear(*e);
        }
        for (e, old) in path.iter().zip(before) {
            self.set(*e, if old == a { b } else { a });
        }
        self.set(edge, a);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn worst_excess(edges: &[(u32, u32)], colours: u32) -> i64 {
        let result = colour(edges, colours);
        assert_eq!(result.len(), edges.len());
        let mut degree: BTreeMap<(u8, u32), u32> = BTreeMap::new();
        let mut load: BTreeMap<(u8, u32, u32), u32> = BTreeMap::new();
        for ((l, r), c) in edges.iter().zip(result) {
            assert!(c < colours);
            for (side, vertex) in [(0, *l), (1, *r)] {
                *degree.entry((side, vertex)).or_default() += 1;
                *load.entry((side, vertex, c)).or_default() += 1;
            }
        }
        load.iter()
            .map(|((side, vertex, _), n)| {
                i64::from(*n) - i64::from(degree[&(*side, *vertex)].div_ceil(colours))
            })
            .max()
            .unwrap_or(0)
    }

    #[test]
    fn no_colours_no_answer() {
        assert!(colour(&[(0, 0)], 0).is_empty());
    }

    proptest! {
        #[test]
        fn no_vertex_exceeds_its_even_share(
            edges in proptest::collection::vec((0u32..8, 0u32..8), 0..200), colours in 1u32..9,
        ) {
            prop_assert!(worst_excess(&edges, colours) <= 0);
        }
    }
}
