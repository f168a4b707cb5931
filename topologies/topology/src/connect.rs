//! The part of building that is about links.

use rustc_hash::FxHashSet;

use crate::builder::{Builder, MAX_LINKS, check_speed};
use crate::fault::Fault;
use crate::ids::{End, LinkId, NicPortRef, Node, PortRef};
use crate::model::{Link, MAX_PORT, NicPort, Port};

impl Builder {
    /// Connects two ends, in either order. The speed may be left to what the ends declare.
    ///
    /// # Errors
    /// An end that isn't there or is taken, ends of one node or of tiers that are no neighbours,
    /// or speeds that disagree or that nobody gave.
    pub fn add_link(
        &mut self,
        first: End,
        second: End,
        speed_bps: Option<u64>,
        delay_ns: u64,
    ) -> Result<LinkId, Fault> {
        if self.topology.links.len() >= MAX_LINKS {
            return Err(Fault::TooMany {
                what: "links",
                limit: MAX_LINKS as u64,
            });
        }
        let (lower, upper) = self.order(first, second)?;
        self.check_end(lower)?;
        self.check_end(End::Switch(upper))?;
        let speed_bps = self.speed(lower, upper, speed_bps)?;
        let link = LinkId::at(self.topology.links.len());
        match lower {
            End::Switch(PortRef { switch, port }) => {
                *self.port_mut(switch, port) = Port {
                    speed_bps,
                    link: Some(link),
                };
            }
            End::Nic(NicPortRef { nic, port }) => {
                self.topology.nics[nic.index()].ports[usize::from(port)] = Some(NicPort {
                    number: port,
                    link,
                    leaf: upper,
                });
            }
        }
        *self.port_mut(upper.switch, upper.port) = Port {
            speed_bps,
            link: Some(link),
        };
        self.topology.links.push(Link {
            lower,
            upper,
            speed_bps,
            delay_ns,
        });
        Ok(link)
    }

    /// Changes speed or delay of a link, on both ends' ports too.
    pub(crate) fn change_link(
        &mut self,
        link: LinkId,
        speed_bps: Option<u64>,
        delay_ns: Option<u64>,
    ) {
        let changed = &mut self.topology.links[link.index()];
        changed.speed_bps = speed_bps.unwrap_or(changed.speed_bps);
        changed.delay_ns = delay_ns.unwrap_or(changed.delay_ns);
        let Link { speed_bps, .. } = *changed;
        for port in changed.ends().into_iter().filter_map(End::switch_port) {
            self.port_mut(port.switch, port.port).speed_bps = speed_bps;
        }
    }

    /// Unplugs links; the others move up to their places.
    pub(crate) fn remove_links(&mut self, removed: &FxHashSet<LinkId>) {
        let links = std::mem::take(&mut self.topology.links);
        for (old, link) in (0..).map(LinkId).zip(links) {
            let new = LinkId::at(self.topology.links.len());
            let kept = (!removed.contains(&old)).then_some(new);
            for end in link.ends() {
                match end {
                    End::Switch(PortRef { switch, port }) => {
                        self.port_mut(switch, port).link = kept
                    }
                    End::Nic(NicPortRef { nic, port }) => {
                        let port = &mut self.topology.nics[nic.index()].ports[usize::from(port)];
                        *port = port
                            .take()
                            .zip(kept)
                            .map(|(port, link)| NicPort { link, ..port });
                    }
                }
            }
            if kept.is_some() {
                self.topology.links.push(link);
            }
        }
    }

    fn rank(&self, end: End) -> u8 {
        match end {
            End::Nic(_) => 0,
            End::Switch(port) => 1 + self.topology[port.switch].tier as u8,
        }
    }

    fn order(&self, first: End, second: End) -> Result<(End, PortRef), Fault> {
        let (a, b) = (self.topology.node(first), self.topology.node(second));
        if a == b {
            return Err(Fault::SelfLink(self.node_name(a).to_owned()));
        }
        let (low, high) = if self.rank(first) <= self.rank(second) {
            (first, second)
        } else {
            (second, first)
        };
        match high {
            End::Switch(upper) if self.rank(low) + 1 == self.rank(high) => Ok((low, upper)),
            _ => Err(Fault::NotNeighbours {
                first: self.described(a),
                second: self.described(b),
            }),
        }
    }

    fn check_end(&self, end: End) -> Result<(), Fault> {
        let taken = match end {
            End::Switch(port_ref @ PortRef { switch, port }) => {
                let known = self.topology[switch].port(port);
                let undeclared = known.is_none_or(|port| port.speed_bps == 0);
                if !(1..=MAX_PORT).contains(&port) || (self.declared[switch.index()] && undeclared)
                {
                    return Err(self.port_range(port_ref.switch, u32::from(port)));
                }
                known.and_then(|port| port.link)
            }
            End::Nic(NicPortRef { nic, port }) => {
                let count = self.topology[nic].port_count;
                if port >= count {
                    let nic = self.topology.nic_name(nic);
                    return Err(Fault::NicPortRange {
                        nic,
                        port: u32::from(port),
                        count,
                    });
                }
                self.topology[nic].port(port).map(|port| port.link)
            }
        };
        match taken {
            Some(by) => Err(Fault::PortTaken {
                end: self.topology.end_name(end),
                by,
            }),
            None => Ok(()),
        }
    }

    /// The speed that link and ends agree on.
    fn speed(&self, lower: End, upper: PortRef, link: Option<u64>) -> Result<u64, Fault> {
        let declared = |end: End| match end {
            End::Switch(port) => {
                let speed = self.topology[port.switch]
                    .port(port.port)
                    .map(|port| port.speed_bps);
                speed.filter(|speed| *speed != 0)
            }
            End::Nic(port) => self.given[port.nic.index()].speed_bps,
        };
        let upper = End::Switch(upper);
        let quoted = |end| format!("`{}`", self.topology.end_name(end));
        let mut known: Option<(String, u64)> = None;
        let says = [
            (declared(lower), Some(lower)),
            (declared(upper), Some(upper)),
            (link, None),
        ];
        for (speed, end) in says {
            let Some(speed) = speed else { continue };
            check_speed(speed)?;
            let who = || end.map_or_else(|| "the link".to_owned(), quoted);
            match &known {
                Some((_, other)) if *other == speed => {}
                Some((first, other)) => {
                    return Err(Fault::SpeedMismatch {
                        first: first.clone(),
                        first_bps: *other,
                        second: who(),
                        second_bps: speed,
                    });
                }
                None => known = Some((who(), speed)),
            }
        }
        let name = || {
            format!(
                "{} - {}",
                self.topology.end_name(lower),
                self.topology.end_name(upper)
            )
        };
        known
            .map(|(_, speed)| speed)
            .ok_or_else(|| Fault::NoSpeed(name()))
    }

    fn node_name(&self, node: Node) -> &str {
        match node {
            Node::Switch(id) => &self.topology[id].name,
            Node::Host(id) => &self.topology[id].name,
        }
    }

    fn described(&self, node: Node) -> String {
        match node {
            Node::Switch(id) => {
                format!(
                    "{} `{}`",
                    self.topology[id].tier.name(),
                    self.topology[id].name
                )
            }
            Node::Host(id) => format!("host `{}`", self.topology[id].name),
        }
    }
}
