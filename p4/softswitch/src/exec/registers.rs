//! Registers, also where several lanes have them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{Run, at};
use crate::program::code::Slot;
use crate::program::law::{Law, Locks};
use crate::switch::Access;

/// Rounds of waiting for a lock before others are let run on this core.
const SPINS: u32 = 200;

/// A lock on cells of registers, on a line of its own. What it guards are atomic words; it keeps
/// steps apart.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Lock(AtomicBool);

impl Lock {
    fn lock(&self) {
        let mut spins = 0;
        while self.0.swap(true, Ordering::Acquire) {
            while self.0.load(Ordering::Relaxed) {
                spins += 1;
                match spins % SPINS {
                    0 => std::thread::yield_now(),
                    _ => std::hint::spin_loop(),
                }
            }
        }
    }

    fn unlock(&self) {
        self.0.store(false, Ordering::Release);
    }
}

/// The locks that a program's [`Law`] asks for; none where nobody shares registers.
#[derive(Debug, Default)]
pub(crate) struct RegisterLocks(Vec<Lock>);

impl RegisterLocks {
    pub(crate) fn new(law: &Law) -> Self {
        RegisterLocks((0..law.count).map(|_| Lock::default()).collect())
    }
}

/// Where a cell of a register array is.
fn cell(cells: &[AtomicU64], n: usize, index: u64) -> Option<std::ops::Range<usize>> {
    let start = usize::try_from(index).ok()?.checked_mul(n)?;
    (start < cells.len()).then_some(start..start + n)
}

impl Run<'_> {
    /// Whether the packet has some lock of the array.
    fn has(&self, locks: Locks) -> bool {
        let own = locks.first..locks.first + locks.count;
        self.machine.held.iter().any(|held| own.contains(held))
    }

    /// Locks the array's cell, unless the packet has a lock of the array: whether it had not.
    fn lock(&mut self, locks: Locks, index: u64) -> bool {
        if self.has(locks) {
            return false;
        }
        let number = locks.first + (index % u64::from(locks.count)) as u32;
        if let Some(lock) = self.state.locks.0.get(number as usize) {
            lock.lock();
            self.machine.held.push(number);
        }
        true
    }

    fn unlock(&mut self, locks: Locks) {
        let own = locks.first..locks.first + locks.count;
        let all = &self.state.locks.0;
        self.machine.held.retain(|held| {
            let release = own.contains(held);
            if release {
                all[*held as usize].unlock();
            }
            !release
        });
    }

    #[cold]
    pub(super) fn unlock_all(&mut self) {
        for held in self.machine.held.drain(..) {
            self.state.locks.0[held as usize].unlock();
        }
    }

    /// The array's locks, where others share it.
    fn locks(&self, register: usize) -> Option<Locks> {
        match self.state {
            Access::Alone(_) => None,
            Access::Beside(_) => self.program.parts.law.arrays[register],
        }
    }

    pub(super) fn read_register(&mut self, d: Slot, register: usize, index: Slot, hold: bool) {
        let index = self.machine.frame[at(index)];
        let n = self.state.registers[register].limbs;
        let locks = self.locks(register).filter(|_| hold || n > 1);
        let locked = locks.filter(|locks| self.lock(*locks, index));
        let register = &self.state.registers[register];
        if let Some(cell) = cell(&register.cells, n, index) {
            let words = self.machine.frame[at(d)..at(d) + n].iter_mut();
            for (word, own) in words.zip(&register.cells[cell]) {
                *word = own.load(Ordering::Relaxed);
            }
        }
        if let (Some(locks), false) = (locked, hold) {
            self.unlock(locks);
        }
    }

    pub(super) fn write_register(&mut self, register: usize, index: Slot, a: Slot, free: bool) {
        let index = self.machine.frame[at(index)];
        let locks = self.locks(register);
        let locked = locks.is_some_and(|locks| self.lock(locks, index));
        let register = &self.state.registers[register];
        let n = register.limbs;
        if let Some(cell) = cell(&register.cells, n, index) {
            let words = self.machine.frame[at(a)..at(a) + n].iter();
            for (word, own) in words.zip(&register.cells[cell]) {
                own.store(*word, Ordering::Relaxed);
            }
        }
        if let Some(locks) = locks.filter(|_| free || locked) {
            self.unlock(locks);
        }
    }
}
