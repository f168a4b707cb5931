//! What every target's bring-up shares.

use controller::session::Endpoint;
use lab::SwitchEndpoint;

/// The controller's way to a switch of a running fabric.
pub(crate) fn endpoint(switch: &SwitchEndpoint) -> Endpoint {
    let reach = switch.clone();
    Endpoint::new(switch.name.clone(), switch.device_id, move || {
        let reach = reach.clone();
        async move { reach.channel().await }
    })
}
