//! The packet's way out: queues, egress, deparser.

use super::Packet;
use super::port::Popped;
use super::traffic::{Entry, LOOP_LIMIT, Work, at, instance};
use crate::exec::Run;
use crate::exec::bits::{self, PADDING};
use crate::exec::packet::{Boxed, Inner, Requests};
use crate::ids::Port;
use crate::program::code::ones;
use crate::trace::{self, Event};

impl Work<'_> {
    /// See [`Switch::dequeue`](super::Switch::dequeue).
    pub fn dequeue(&mut self, port: Port, now: u64) -> Option<Packet> {
        let mut packet = self.next_out(port, now)?;
        let mut bytes = std::mem::take(&mut packet.buf);
        bytes.truncate(packet.out_len());
        packet.buf = self.lane.buffers.pop().unwrap_or_default();
        self.lane.put_back(packet);
        Some(Packet { port, bytes })
    }

    /// See [`Switch::dequeue_with`](super::Switch::dequeue_with).
    pub fn dequeue_with<R>(
        &mut self,
        port: Port,
        now: u64,
        take: impl FnOnce(&[u8]) -> R,
    ) -> Option<R> {
        let packet = self.next_out(port, now)?;
        let result = take(&packet.buf[..packet.out_len()]);
        self.lane.put_back(packet);
        Some(result)
    }

    /// See [`Switch::dequeue_into`](super::Switch::dequeue_into).
    pub fn dequeue_into(&mut self, port: Port, now: u64, out: &mut Vec<u8>) -> Option<usize> {
        self.dequeue_with(port, now, |bytes| {
            out.extend_from_slice(bytes);
            bytes.len()
        })
    }

    /// The next packet that leaves by the port, deparsed.
    fn next_out(&mut self, port: Port, now: u64) -> Option<Boxed> {
        let mut sent = None;
        // What recirculation adds to this very port waits for the next call.
        for _ in 0..LOOP_LIMIT {
            let Some(Popped {
                packet,
                start,
                left,
            }) = self.take_out(port, now)
            else {
                break;
            };
            let queue = packet.queue;
            if let Some(tracer) = &mut self.lane.machine.tracer {
                tracer.current = packet.number;
            }
            self.note(|| Event::Dequeue {
                port,
                queue,
                waited: now.saturating_sub(packet.queued_ns),
            });
            sent = self.egress(port, packet, left, now);
            if let Some(packet) = &sent {
                let bytes = &packet.buf[..packet.out_len()];
                self.note(|| Event::Sent {
                    port,
                    length: bytes.len(),
                    bytes: trace::hex(bytes),
                });
            }
            // What circulates goes on in the same part.
            if self.lane.again.is_empty() {
                self.end_of_trace();
            }
            if let Some(packet) = &sent {
                self.queues.charge(port, queue, start, packet.out_len());
                break;
            }
        }
        self.run_again(now);
        self.end_of_trace();
        if sent.is_some() {
            self.lane.ledger.stats.sent += 1;
        }
        sent
    }

    fn egress(&mut self, port: Port, mut packet: Boxed, left: usize, now: u64) -> Option<Boxed> {
        let program = self.program;
        let requests = self.egress_once(port, &mut packet, left, now);
        if requests.abort {
            self.note(|| Event::Drop {
                reason: "an assertion failed or a loop did not end",
            });
            self.lane.put_back(packet);
            return None;
        }
        if let Some((session, list)) = requests.clone {
            self.clone_egress(&packet, session, list, now);
        }
        let drop_port = self.drop_port;
        if self.lane.machine.frame[at(program.standard.egress_spec)] == drop_port {
            self.lane.ledger.drop_in_egress(port);
            self.note(|| Event::Drop {
                reason: "egress_spec is the drop port at the end of egress",
            });
            self.lane.put_back(packet);
            return None;
        }
        self.deparse(&mut packet, now);
        if let Some(list) = requests.recirculate {
            self.note(|| Event::Recirculate);
            self.recirculate(packet, list);
            return None;
        }
        Some(packet)
    }

    fn egress_once(&mut self, port: Port, packet: &mut Inner, left: usize, now: u64) -> Requests {
        let program = self.program;
        let mut requests = Requests::default();
        self.load_words(packet);
        let Some(state) = self.state.as_mut() else {
            return requests;
        };
        let standard = &program.standard;
        let frame = &mut self.lane.machine.frame;
        let time = now / 1000;
        if let Some(slot) = standard.egress_timestamp {
            frame[at(slot)] = time & ones(48);
        }
        if let Some([_, _, (delta, delta_bits), (depth, depth_bits)]) = standard.queueing {
            frame[at(delta)] = time.wrapping_sub(packet.queued_at) & ones(delta_bits);
            frame[at(depth)] = left as u64 & ones(depth_bits);
            if let Some(slot) = standard.qid {
                frame[at(slot)] = packet.queue.into();
            }
        }
        frame[at(standard.egress_port)] = port.into();
        // Anything but the drop port, so that egress has to ask for a drop.
        frame[at(standard.egress_spec)] = (self.drop_port + 1) & ones(9);
        frame[at(standard.packet_length)] = packet.length & ones(32);
        let mut run = Run {
            program,
            state: state.again(),
            machine: &mut self.lane.machine,
            ledger: &mut self.lane.ledger,
            packet,
            requests: &mut requests,
            now,
            drop_port: self.drop_port,
        };
        run.run(program.parts.egress);
        requests
    }

    /// Updates checksums and puts the valid headers in front of the payload.
    fn deparse(&mut self, packet: &mut Inner, now: u64) {
        let program = self.program;
        let mut requests = Requests::default();
        if let Some(state) = self.state.as_mut() {
            let mut run = Run {
                program,
                state: state.again(),
                machine: &mut self.lane.machine,
                ledger: &mut self.lane.ledger,
                packet,
                requests: &mut requests,
                now,
                drop_port: self.drop_port,
            };
            run.run(program.parts.update);
            run.run(program.parts.deparse);
        }
        let frame = &self.lane.machine.frame;
        // Flags are numbered like headers: what is not there costs a look at its flag.
        let order = program.parts.deparse_order.iter();
        let mut leaving = std::mem::take(&mut self.lane.leaving);
        leaving.clear();
        leaving.extend(order.filter(|&&h| frame[at(h)] != 0));
        let valid = leaving.iter().map(|&h| &program.headers[usize::from(h)]);
        let headers: usize = valid.clone().map(|h| bits::header_bytes(frame, h)).sum();
        let emit = |out: &mut [u8]| {
            let all = valid.fold(0, |start, h| start + bits::emit(frame, h, out, start));
            debug_assert_eq!(all, headers);
        };
        if headers == packet.cursor {
            // The headers take as much room as those that came in.
            let after = headers..headers + bits::OVERRUN;
            let mut saved = [0; bits::OVERRUN];
            saved.copy_from_slice(&packet.buf[after.clone()]);
            emit(&mut packet.buf);
            packet.buf[after].copy_from_slice(&saved);
            self.lane.leaving = leaving;
            return;
        }
        let payload = packet.len - packet.cursor;
        let mut buf = self.lane.buffers.pop().unwrap_or_default();
        // Varbit fields are written into what is there, bit by bit.
        buf.clear();
        buf.resize(headers + payload + PADDING, 0);
        emit(&mut buf);
        buf[headers..headers + payload].copy_from_slice(packet.payload());
        let old = std::mem::replace(&mut packet.buf, buf);
        self.lane.put_buffer_back(old);
        packet.len = headers + payload;
        packet.cursor = headers;
        self.lane.leaving = leaving;
    }

    fn recirculate(&mut self, mut packet: Boxed, list: u16) {
        if self.lane.again.len() >= LOOP_LIMIT {
            self.lane.ledger.stats.loop_drops += 1;
            return self.lane.put_back(packet);
        }
        let kept = self.keep(list);
        let len = packet.len;
        packet.arrived(len);
        let entry = Entry {
            port: None,
            instance: instance::RECIRCULATED,
            kept,
        };
        self.lane.again.push_back((packet, entry));
    }

    /// The port's next packet that may leave.
    fn take_out(&mut self, port: Port, now: u64) -> Option<Popped> {
        let popped = self.queues.pop(port, now, |packet| {
            self.lane.machine.save(self.program, &mut packet.words);
            packet.is_resident = false;
        });
        if popped.is_none() && self.lane.resident.is_some_and(|(own, _)| own == port) {
            self.lane.resident = None;
        }
        popped
    }
}
