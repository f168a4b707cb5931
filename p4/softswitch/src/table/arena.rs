//! The nodes of a tree, by number; numbers of dropped nodes are used again.

use std::ops::{Index, IndexMut};

#[derive(Default)]
pub(super) struct Arena<T> {
    nodes: Vec<T>,
    free: Vec<u32>,
}

impl<T: Default> Arena<T> {
    pub(super) fn add(&mut self, node: T) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self[number] = node;
                number
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
        }
    }

    /// Drops a node; one that holds nothing stands there until the number is
    /// used again.
    pub(super) fn remove(&mut self, number: u32) {
        self[number] = T::default();
        self.free.push(number);
    }

    pub(super) fn clear(&mut self) {
        self.nodes.clear();
        self.free.clear();
    }
}

impl<T> Arena<T> {
    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&T> {
        self.nodes.get(number as usize)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.nodes.get_mut(number as usize)
    }
}

impl<T> Index<u32> for Arena<T> {
    type Output = T;

    #[inline]
    fn index(&self, number: u32) -> &T {
        &self.nodes[number as usize]
    }
}

impl<T> IndexMut<u32> for Arena<T> {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.nodes[number as usize]
    }
}
