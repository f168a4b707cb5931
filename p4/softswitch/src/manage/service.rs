//! The `meridian.switch.v1.SwitchControl` service.

use std::collections::BTreeSet;

use p4runtime::switch::v1::switch_control_server::{SwitchControl, SwitchControlServer};
use p4runtime::switch::v1::{
    self, ListHashesRequest, ListHashesResponse, ListPortsRequest, ListPortsResponse,
    ListQueuesRequest, ListQueuesResponse, SetHashRequest, SetHashResponse, SetQueuesRequest,
    SetQueuesResponse, rate::Limit,
};
use tonic::{Request, Response, Status};

use super::hashes;
use crate::ids::Port;
use crate::ports::{Ports, Waker};
use crate::server::Server;
use crate::switch::{Exclusive, Rate, Switch};

/// Ports that a queue can be of.
const PORT_MAX: u32 = 511;
/// Packets that a queue may be set to hold: each takes about as much memory as it has bytes.
const DEPTH_MAX: u64 = 1 << 20;

/// Serves requests about the queues, ports and hashes of one switch.
#[derive(Clone)]
pub struct SwitchControlService {
    server: Server,
    ports: Ports,
    waker: Waker,
}

impl SwitchControlService {
    /// A service for the switch of `server`. `waker` wakes the thread that sends, when a rate
    /// has changed.
    pub fn new(server: Server, ports: Ports, waker: Waker) -> Self {
        SwitchControlService {
            server,
            ports,
            waker,
        }
    }

    /// The tonic service.
    pub fn grpc(self) -> SwitchControlServer<Self> {
        SwitchControlServer::new(self)
    }

    fn lock(&self) -> Exclusive<'_> {
        self.server.switch().lock()
    }

    /// Ports with an interface, and those whose queues have been used or set.
    fn known_ports(&self, switch: &Switch) -> BTreeSet<Port> {
        let mut ports: BTreeSet<Port> = switch.used_ports().collect();
        ports.extend(self.ports.list().iter().map(|info| info.port));
        ports
    }
}

/// A rate as a message; no rate is one without limit.
pub fn rate_to_message(rate: Option<Rate>) -> v1::Rate {
    let limit = rate.map(|rate| match rate {
        Rate::BitsPerSecond(bits) => Limit::BitsPerSecond(bits),
        Rate::PacketsPerSecond(packets) => Limit::PacketsPerSecond(packets),
    });
    v1::Rate { limit }
}

/// The rate that a message stands for; `None`: without limit.
pub fn rate_from_message(rate: &v1::Rate) -> Option<Rate> {
    rate.limit.as_ref().map(|limit| match limit {
        Limit::BitsPerSecond(bits) => Rate::BitsPerSecond(*bits),
        Limit::PacketsPerSecond(packets) => Rate::PacketsPerSecond(*packets),
    })
}

fn checked_port(port: u32) -> Result<Port, Status> {
    match Port::try_from(port) {
        Ok(number) if port <= PORT_MAX => Ok(number),
        _ => Err(Status::invalid_argument(format!(
            "port {port}: ports are 0 to {PORT_MAX}"
        ))),
    }
}

fn checked_rate(field: &str, rate: Option<&v1::Rate>) -> Result<Option<Option<Rate>>, Status> {
    let Some(rate) = rate.map(rate_from_message) else {
        return Ok(None);
    };
    if let Some(Rate::BitsPerSecond(0) | Rate::PacketsPerSecond(0)) = rate {
        return Err(Status::invalid_argument(format!(
            "{field}: a rate of 0 would keep packets for ever; set no limit to take it off, or \
             depth_packets to 0 to drop everything"
        )));
    }
    Ok(Some(rate))
}

/// A request that has been checked whole, so that it is applied whole.
struct Change {
    port: Option<Port>,
    queue: Option<u8>,
    depth: Option<usize>,
    rate: Option<Option<Rate>>,
    port_rate: Option<Option<Rate>>,
}

impl Change {
    fn check(request: &SetQueuesRequest, queues: u8) -> Result<Change, Status> {
        let port = request.port.map(checked_port).transpose()?;
        let queue = match request.queue {
            Some(queue) if queue >= u32::from(queues) => {
                return Err(Status::invalid_argument(format!(
                    "queue {queue}: this switch has queues 0 to {}; --priority-queues at its \
                     start says how many",
                    queues - 1
                )));
            }
            queue => queue.map(|queue| queue as u8),
        };
        if queue.is_some() && port.is_none() {
            return Err(Status::invalid_argument(
                "queue without port: name the port",
            ));
        }
        let rate = checked_rate("rate", request.rate.as_ref())?;
        let port_rate = checked_rate("port_rate", request.port_rate.as_ref())?;
        if port_rate.is_some() && (port.is_none() || queue.is_some()) {
            return Err(Status::invalid_argument(
                "port_rate is of all the queues of one port: name the port and no queue",
            ));
        }
        let depth = match request.depth_packets {
            Some(depth) if depth > DEPTH_MAX => {
                return Err(Status::invalid_argument(format!(
                    "depth_packets {depth}: a queue holds {DEPTH_MAX} packets at most"
                )));
            }
            depth => depth.map(|depth| depth as usize),
        };
        if depth.is_none() && rate.is_none() && port_rate.is_none() {
            return Err(Status::invalid_argument(
                "nothing to set: give depth_packets, rate or port_rate",
            ));
        }
        Ok(Change {
            port,
            queue,
            depth,
            rate,
            port_rate,
        })
    }

    fn apply(&self, switch: &mut Switch) {
        match (self.port, self.depth) {
            (Some(port), Some(depth)) => switch.set_queue_depth(port, self.queue, depth),
            (None, Some(depth)) => switch.set_all_queue_depths(depth),
            (_, None) => {}
        }
        match (self.port, self.rate) {
            (Some(port), Some(rate)) => switch.set_queue_rate(port, self.queue, rate),
            (None, Some(rate)) => switch.set_all_queue_rates(rate),
            (_, None) => {}
        }
        if let (Some(port), Some(rate)) = (self.port, self.port_rate) {
            switch.set_port_rate(port, rate);
        }
    }
}

fn queues_of(switch: &Switch, port: Port) -> impl Iterator<Item = v1::Queue> + use<> {
    let states = switch.queue_states(port);
    states.into_iter().map(move |state| v1::Queue {
        port: port.into(),
        queue: state.queue.into(),
        packets: state.packets as u64,
        depth_packets: state.depth as u64,
        rate: Some(rate_to_message(state.rate)),
        counters: Some(v1::QueueCounters {
            packets_in: state.counts.packets_in,
            packets_out: state.counts.packets_out,
            bytes_out: state.counts.bytes_out,
            drops: state.counts.drops,
        }),
    })
}

#[tonic::async_trait]
impl SwitchControl for SwitchControlService {
    async fn list_ports(
        &self,
        _: Request<ListPortsRequest>,
    ) -> Result<Response<ListPortsResponse>, Status> {
        let infos = self.ports.list();
        let switch = self.lock();
        let ports = infos.into_iter().map(|info| v1::Port {
            port: info.port.into(),
            interface: info.interface,
            up: info.is_up,
            rate: Some(rate_to_message(switch.port_rate(info.port))),
            counters: Some(v1::PortCounters {
                received_packets: info.stats.received,
                received_bytes: info.stats.received_bytes,
                receive_drops: info.stats.receive_drops,
                sent_packets: info.stats.sent,
                sent_bytes: info.stats.sent_bytes,
                send_drops: info.stats.send_drops,
            }),
        });
        let ports = ports.collect();
        Ok(Response::new(ListPortsResponse { ports }))
    }

    async fn list_queues(
        &self,
        request: Request<ListQueuesRequest>,
    ) -> Result<Response<ListQueuesResponse>, Status> {
        let port = request.into_inner().port.map(checked_port).transpose()?;
        let switch = self.lock();
        let ports = match port {
            Some(port) => BTreeSet::from([port]),
            None => self.known_ports(&switch),
        };
        let queues = ports.into_iter().flat_map(|port| queues_of(&switch, port));
        let queues = queues.collect();
        Ok(Response::new(ListQueuesResponse { queues }))
    }

    async fn set_queues(
        &self,
        request: Request<SetQueuesRequest>,
    ) -> Result<Response<SetQueuesResponse>, Status> {
        let request = request.into_inner();
        let queues = {
            let mut switch = self.lock();
            let change = Change::check(&request, switch.config().queues)?;
            change.apply(&mut switch);
            let ports = match change.port {
                Some(port) => BTreeSet::from([port]),
                None => self.known_ports(&switch),
            };
            let meant =
                |queue: &v1::Queue| change.queue.is_none_or(|q| queue.queue == u32::from(q));
            let queues = ports.into_iter().flat_map(|port| queues_of(&switch, port));
            queues.filter(meant).collect()
        };
        self.waker.wake();
        Ok(Response::new(SetQueuesResponse { queues }))
    }

    async fn list_hashes(
        &self,
        _: Request<ListHashesRequest>,
    ) -> Result<Response<ListHashesResponse>, Status> {
        let hashes = hashes::list(&self.lock())?;
        Ok(Response::new(ListHashesResponse { hashes }))
    }

    async fn set_hash(
        &self,
        request: Request<SetHashRequest>,
    ) -> Result<Response<SetHashResponse>, Status> {
        let hash = hashes::set(&mut self.lock(), request.into_inner())?;
        Ok(Response::new(SetHashResponse { hash: Some(hash) }))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn bits(rate: u64) -> Option<v1::Rate> {
        Some(rate_to_message(Some(Rate::BitsPerSecond(rate))))
    }

    fn request() -> SetQueuesRequest {
        SetQueuesRequest::default()
    }

    #[test]
    fn what_does_not_make_sense_is_refused_by_name() {
        for (request, said) in [
            (request(), "nothing to set"),
            (
                SetQueuesRequest {
                    port: Some(512),
                    ..request()
                },
                "port 512",
            ),
            (
                SetQueuesRequest {
                    port: Some(1),
                    queue: Some(2),
                    ..request()
                },
                "--priority-queues",
            ),
            (
                SetQueuesRequest {
                    queue: Some(1),
                    depth_packets: Some(1),
                    ..request()
                },
                "name the port",
            ),
            (
                SetQueuesRequest {
                    port_rate: bits(1),
                    ..request()
                },
                "port_rate",
            ),
            (
                SetQueuesRequest {
                    rate: bits(0),
                    ..request()
                },
                "rate of 0",
            ),
            (
                SetQueuesRequest {
                    depth_packets: Some(DEPTH_MAX + 1),
                    ..request()
                },
                "at most",
            ),
        ] {
            let error = Change::check(&request, 2).err().unwrap();
            assert_eq!(error.code(), tonic::Code::InvalidArgument);
            assert!(error.message().contains(said), "{}", error.message());
        }
    }

    #[test]
    fn a_change_reaches_what_it_means() {
        let mut switch = Switch::new(crate::SwitchConfig {
            queues: 2,
            ..Default::default()
        });
        let one = SetQueuesRequest {
            port: Some(3),
            queue: Some(1),
            rate: bits(9_000),
            depth_packets: Some(7),
            ..request()
        };
        Change::check(&one, 2).unwrap().apply(&mut switch);
        let whole = SetQueuesRequest {
            port: Some(3),
            port_rate: bits(10_000),
            ..request()
        };
        Change::check(&whole, 2).unwrap().apply(&mut switch);
        let queues: Vec<_> = queues_of(&switch, 3).collect();
        assert_eq!(queues[0].depth_packets, 64);
        assert_eq!(rate_from_message(queues[0].rate.as_ref().unwrap()), None);
        assert_eq!(queues[1].depth_packets, 7);
        assert_eq!(
            rate_from_message(queues[1].rate.as_ref().unwrap()),
            Some(Rate::BitsPerSecond(9_000))
        );
        assert_eq!(switch.port_rate(3), Some(Rate::BitsPerSecond(10_000)));
        let off = SetQueuesRequest {
            rate: Some(v1::Rate::default()),
            ..request()
        };
        Change::check(&off, 2).unwrap().apply(&mut switch);
        let queues: Vec<_> = queues_of(&switch, 3).collect();
        assert_eq!(rate_from_message(queues[1].rate.as_ref().unwrap()), None);
    }
}
