//! Queues and their limits, as the command line writes them.

use std::str::FromStr;

use softswitch::{NotARate, Port, Rate, Switch};

/// Which queues are meant: each, a port's, or one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scope {
    pub(crate) port: Option<Port>,
    pub(crate) queue: Option<u8>,
}

/// Reads a port's number.
pub(crate) fn port(text: &str) -> Result<Port, String> {
    text.parse()
        .ok()
        .filter(|port| *port <= 511)
        .ok_or_else(|| format!("{text:?} is not a port number from 0 to 511"))
}

/// Reads a queue's number.
pub(crate) fn queue(text: &str) -> Result<u8, String> {
    text.parse()
        .ok()
        .filter(|queue| *queue < 8)
        .ok_or_else(|| format!("{text:?} is not a queue from 0 to 7"))
}

impl Scope {
    /// Reads `PORT` or `PORT/QUEUE`.
    fn read(text: &str) -> Result<Scope, String> {
        let (port_text, queue_text) = match text.split_once('/') {
            Some((port, queue)) => (port, Some(queue)),
            None => (text, None),
        };
        Ok(Scope {
            port: Some(port(port_text)?),
            queue: queue_text.map(queue).transpose()?,
        })
    }

    /// The scope before the colon, if there is one, and what follows.
    fn split(text: &str) -> Result<(Scope, &str), String> {
        match text.split_once(':') {
            Some((scope, rest)) => Ok((Scope::read(scope)?, rest)),
            None => Ok((Scope::default(), text)),
        }
    }
}

/// How many packets queues hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DepthLimit {
    pub(crate) scope: Scope,
    depth: usize,
}

impl FromStr for DepthLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (scope, depth) = Scope::split(text)?;
        let depth = depth
            .parse()
            .map_err(|_| format!("{depth:?} is not a number of packets"))?;
        Ok(DepthLimit { scope, depth })
    }
}

/// How fast queues send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RateLimit {
    pub(crate) scope: Scope,
    rate: Option<Rate>,
}

impl FromStr for RateLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (scope, rate) = Scope::split(text)?;
        let rate = Rate::parse(rate).map_err(|e: NotARate| e.to_string())?;
        Ok(RateLimit { scope, rate })
    }
}

/// How fast a port sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PortRateLimit {
    port: Port,
    rate: Option<Rate>,
}

impl FromStr for PortRateLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, rate) = text
            .split_once(':')
            .ok_or_else(|| format!("{text:?} is not PORT:RATE, such as 1:10mbit"))?;
        Ok(PortRateLimit {
            port: port(name)?,
            rate: Rate::parse(rate).map_err(|e| e.to_string())?,
        })
    }
}

/// Sets the limits; those of one queue win over those of more, whatever their order.
pub(crate) fn apply(
    switch: &mut Switch,
    depths: &[DepthLimit],
    rates: &[RateLimit],
    ports: &[PortRateLimit],
) {
    let width = |scope: &Scope| (scope.port.is_some(), scope.queue.is_some());
    let mut depths = depths.to_vec();
    depths.sort_by_key(|limit| width(&limit.scope));
    for limit in depths {
        match limit.scope.port {
            Some(port) => switch.set_queue_depth(port, limit.scope.queue, limit.depth),
            None => switch.set_all_queue_depths(limit.depth),
        }
    }
    let mut rates = rates.to_vec();
    rates.sort_by_key(|limit| width(&limit.scope));
    for limit in rates {
        match limit.scope.port {
            Some(port) => switch.set_queue_rate(port, limit.scope.queue, limit.rate),
            None => switch.set_all_queue_rates(limit.rate),
        }
    }
    for limit in ports {
        switch.set_port_rate(limit.port, limit.rate);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use softswitch::SwitchConfig;

    #[test]
    fn the_narrower_limit_wins() {
        let mut switch = Switch::new(SwitchConfig {
            queues: 2,
            ..SwitchConfig::default()
        });
        let depths = ["2/1:5", "100", "2:7"].map(|text| text.parse().unwrap());
        let rates = ["2/0:5pps", "1mbit"].map(|text| text.parse().unwrap());
        let ports = ["2:2mbit"].map(|text| text.parse().unwrap());
        apply(&mut switch, &depths, &rates, &ports);
        let of = |port| -> Vec<_> {
            let states = switch.queue_states(port).into_iter();
            states
                .map(|q| (q.depth, q.rate.unwrap().to_string()))
                .collect()
        };
        assert_eq!(of(1), [(100, "1mbit".into()), (100, "1mbit".into())]);
        assert_eq!(of(2), [(7, "5pps".into()), (5, "1mbit".into())]);
        assert_eq!(switch.port_rate(2), Some(Rate::BitsPerSecond(2_000_000)));
    }

    #[test]
    fn nonsense_is_explained() {
        for (text, said) in [
            ("x:5", "\"x\" is not a port"),
            ("512:5", "512"),
            ("1/8:5", "queue"),
            ("1:x", "packets"),
        ] {
            let error = text.parse::<DepthLimit>().unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
        assert!("1:5".parse::<RateLimit>().unwrap_err().contains("10mbit"));
        assert!(
            "5pps"
                .parse::<PortRateLimit>()
                .unwrap_err()
                .contains("PORT:RATE")
        );
    }
}
