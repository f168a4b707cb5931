//! In steady state, a packet's way through the switch takes nothing from the
//! allocator. Digests do: they are messages that the caller keeps.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::sync::Arc;

use counting::allocations;
use softswitch::control::{CloneSession, MeterConfig, Replica};
use softswitch::{Program, Switch, SwitchConfig};
use support::l3;

/// An allocator that counts.
mod counting {
    #![allow(unsafe_code, reason = "a global allocator is an unsafe trait")]

    use std::alloc::{GlobalAlloc, Layout, System};
    use std::cell::Cell;

    thread_local! {
        static COUNT: Cell<u64> = const { Cell::new(0) };
    }

    struct Counting;

    // SAFETY: all calls go to the system's allocator as they are. The counter
    // needs no allocation: it is a constant at first and has no destructor.
    unsafe impl GlobalAlloc for Counting {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            COUNT.with(|count| count.set(count.get() + 1));
            // SAFETY: the caller's promise.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
            // SAFETY: the caller's promise.
            unsafe { System.dealloc(memory, layout) }
        }

        unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            COUNT.with(|count| count.set(count.get() + 1));
            // SAFETY: the caller's promise.
            unsafe { System.realloc(memory, layout, size) }
        }
    }

    #[global_allocator]
    static ALLOCATOR: Counting = Counting;

    /// Allocations that this thread made during a call.
    pub(crate) fn allocations(call: impl FnOnce()) -> u64 {
        let before = COUNT.with(Cell::get);
        call();
        COUNT.with(Cell::get) - before
    }
}

/// Sends each packet in and everything out, and says how many came out.
fn pass(switch: &mut Switch, port: u16, packets: &[Vec<u8>], ready: &mut Vec<u16>) -> u64 {
    let mut out = 0;
    for (i, packet) in packets.iter().enumerate() {
        let now = i as u64 * 1_000;
        switch.ingress(port, packet, now);
        switch.take_ready(ready);
        for &port in ready.iter() {
            while switch.dequeue_with(port, now, |_| ()).is_some() {
                out += 1;
            }
        }
    }
    out
}

/// No allocations after some packets have warmed up pools and queues; each
/// packet comes out `copies` times.
fn steady(name: &str, mut switch: Switch, port: u16, packets: &[Vec<u8>], copies: u64) {
    let mut ready = Vec::with_capacity(16);
    for _ in 0..4 {
        pass(&mut switch, port, packets, &mut ready);
    }
    let mut out = 0;
    let count = allocations(|| out = pass(&mut switch, port, packets, &mut ready));
    assert_eq!(out, copies * packets.len() as u64, "{name}: packets out");
    assert_eq!(count, 0, "{name}: allocations of {} packets", packets.len());
}

/// The program that does what a packet's first byte says.
fn copies() -> Switch {
    let program = Program::load(include_bytes!("programs/copies.json")).unwrap();
    let mut switch = Switch::new(SwitchConfig::default());
    switch.install(Arc::new(program));
    let replicas: Vec<Replica> = (1..=3)
        .map(|port| Replica {
            port,
            instance: port,
        })
        .collect();
    switch.multicast_insert(1, &replicas).unwrap();
    let session = CloneSession {
        id: 1,
        replicas: replicas[..1].to_vec(),
        class_of_service: 0,
        packet_length: 64,
    };
    switch.clone_insert(&session).unwrap();
    let meter = switch.program().unwrap().meter_id("In.rate").unwrap();
    let config = MeterConfig {
        cir: 1_000_000,
        cburst: 10_000,
        pir: 2_000_000,
        pburst: 10_000,
        ..MeterConfig::default()
    };
    for index in 0..16 {
        switch.meter_write(meter, index, Some(config)).unwrap();
    }
    switch
}

fn wishes(kind: u8) -> Vec<Vec<u8>> {
    (0..100u8)
        .map(|i| {
            let mut packet = vec![kind, 0, i, i];
            packet.resize(60 + usize::from(i), i);
            packet
        })
        .collect()
}

#[test]
fn forwarding_allocates_nothing() {
    let routed: Vec<Vec<u8>> = (0..200)
        .map(|i| l3::packet(i * 7, i as u16, 64 + i as usize))
        .collect();
    steady("selector", l3::router(), 1, &routed, 1);
    let roce: Vec<Vec<u8>> = (0..200u32)
        .map(|i| support::rocev2(0x0a00_0005 | ((i % 64) << 8), 40_000 + i as u16, i, 256))
        .collect();
    steady("fabric", support::router(), support::ENTRANCE, &roce, 1);
}

#[test]
fn copies_allocate_nothing() {
    for (name, kind, out) in [
        ("unicast", 1, 1),
        ("multicast", 2, 3),
        ("clone in ingress", 3, 2),
        ("clone in egress", 4, 2),
        ("recirculate", 5, 1),
        ("resubmit", 6, 1),
        ("meter and register", 7, 1),
        ("truncate", 9, 1),
        ("longer headers", 10, 1),
    ] {
        steady(name, copies(), 4, &wishes(kind), out);
    }
}

#[test]
fn handing_buffers_over_and_back_allocates_nothing() {
    let mut switch = copies();
    let packets = wishes(1);
    let mut ready = Vec::with_capacity(16);
    let mut pass = |switch: &mut Switch| {
        for packet in &packets {
            switch.ingress(4, packet, 0);
            switch.take_ready(&mut ready);
            for &port in &ready {
                while let Some(packet) = switch.dequeue(port, 0) {
                    switch.recycle(packet);
                }
            }
        }
    };
    (0..4).for_each(|_| pass(&mut switch));
    assert_eq!(allocations(|| pass(&mut switch)), 0);
}

#[test]
fn digests_are_what_allocates() {
    let mut switch = copies();
    let mut ready = Vec::with_capacity(16);
    let count = allocations(|| {
        pass(&mut switch, 4, &wishes(8), &mut ready);
    });
    assert!(count >= 100, "{count} allocations: the counter counts");
    assert_eq!(switch.take_digests().len(), 100);
}
