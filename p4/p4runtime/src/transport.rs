//! Ways to a switch: TCP, TLS, Unix sockets and, within one process, memory.

use std::io;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::io::DuplexStream;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity, Uri};

/// Bytes of header lists that a client accepts. A status carries one error per
/// update of a batch in its trailers, so that the usual 8 or 16 KiB are too few.
pub const MAX_HEADER_BYTES: u32 = 4 << 20;

/// Bytes that a connection in memory holds before its writer waits.
const MEMORY_BUFFER: usize = 256 << 10;

/// Bytes that a server may send ahead of the reader, by stream and in all.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;

/// Why there is no way to the switch.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is none.
    #[error(
        "`{address}` is not an address of a switch; write host:port, http://host:port, https://host:port or unix:/path"
    )]
    Address {
        /// As given.
        address: String,
        /// What does not fit.
        source: tonic::transport::Error,
    },
    /// The certificates or keys do not fit.
    #[error("the TLS settings for `{address}` do not fit: {}", root(.source))]
    Tls {
        /// As given.
        address: String,
        /// What does not fit.
        source: tonic::transport::Error,
    },
    /// Nobody answers.
    #[error("no switch answers at {address}: {}", root(.source))]
    Connect {
        /// As given.
        address: String,
        /// What went wrong.
        source: tonic::transport::Error,
    },
}

/// tonic says "transport error"; the reason is at the end of the chain.
fn root(error: &tonic::transport::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// How to prove who is who.
#[derive(Debug, Clone, Default)]
pub struct Tls {
    /// PEM of the authority that signed the switch's certificate.
    pub ca: Option<Vec<u8>>,
    /// PEM of the client's certificate and of its key.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// The name in the switch's certificate, if it is not the host's.
    pub domain: Option<String>,
}

/// The settings that every connection to a switch has.
fn tuned(endpoint: Endpoint) -> Endpoint {
    endpoint
        .http2_max_header_list_size(MAX_HEADER_BYTES)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .tcp_nodelay(true)
        .connect_timeout(Duration::from_secs(5))
}

/// An endpoint with the limits that P4Runtime needs, for those who connect
/// themselves. Without a scheme, `address` is `host:port`.
///
/// # Errors
/// [`Error::Address`], and [`Error::Tls`] when the settings do not fit.
pub fn endpoint(address: &str, tls: Option<&Tls>) -> Result<Endpoint, Error> {
    let scheme = if tls.is_some() { "https" } else { "http" };
    let uri = match address.contains("://") || address.starts_with("unix:") {
        true => address.to_owned(),
        false => format!("{scheme}://{address}"),
    };
    let secure = uri.starts_with("https:");
    let endpoint = Endpoint::from_shared(uri).map_err(|source| Error::Address {
        address: address.to_owned(),
        source,
    })?;
    // A link that is cut without a word must not look like a silent switch.
    let endpoint = tuned(endpoint)
        .http2_keep_alive_interval(Duration::from_secs(10))
        .keep_alive_timeout(Duration::from_secs(5))
        .keep_alive_while_idle(true);
    if !secure {
        return Ok(endpoint);
    }
    let mut config = ClientTlsConfig::new();
    let tls = tls.cloned().unwrap_or_default();
    if let Some(ca) = tls.ca {
        config = config.ca_certificate(Certificate::from_pem(ca));
    }
    if let Some((certificate, key)) = tls.identity {
        config = config.identity(Identity::from_pem(certificate, key));
    }
    if let Some(domain) = tls.domain {
        config = config.domain_name(domain);
    }
    endpoint.tls_config(config).map_err(|source| Error::Tls {
        address: address.to_owned(),
        source,
    })
}

/// Connects to a switch; see [`endpoint`] for addresses.
///
/// # Errors
/// [`Error::Address`], and [`Error::Connect`] after at most five seconds.
pub async fn connect(address: &str) -> Result<Channel, Error> {
    connect_tls(address, None).await
}

/// As [`connect`], with TLS if there are settings for it.
///
/// # Errors
/// As [`connect`], and [`Error::Tls`].
pub async fn connect_tls(address: &str, tls: Option<&Tls>) -> Result<Channel, Error> {
    let connected = endpoint(address, tls)?.connect().await;
    connected.map_err(|source| Error::Connect {
        address: address.to_owned(),
        source,
    })
}

/// The server's end of [`in_memory`], for tonic's `serve_with_incoming`.
pub type Incoming = UnboundedReceiverStream<io::Result<DuplexStream>>;

/// The client's end of [`in_memory`]; every channel is a connection of its own.
#[derive(Debug, Clone)]
pub struct Connector {
    dial: mpsc::UnboundedSender<io::Result<DuplexStream>>,
}

/// A way to a switch in the same process, without sockets: hand the second part
/// to `Server::serve_with_incoming`, and get channels from the first. The server
/// ends once every connector and channel is gone.
#[must_use]
pub fn in_memory() -> (Connector, Incoming) {
    let (dial, accept) = mpsc::unbounded_channel();
    (Connector { dial }, UnboundedReceiverStream::new(accept))
}

impl Connector {
    /// Connects. The channel connects again by itself if the server drops it.
    ///
    /// # Errors
    /// [`Error::Connect`] when the server is gone.
    pub async fn channel(&self) -> Result<Channel, Error> {
        let dial = self.dial.clone();
        let connector = tower::service_fn(move |_: Uri| {
            let dial = dial.clone();
            async move {
                let (near, far) = tokio::io::duplex(MEMORY_BUFFER);
                match dial.send(Ok(far)) {
                    Ok(()) => Ok(TokioIo::new(near)),
                    Err(_) => Err(io::Error::from(io::ErrorKind::ConnectionRefused)),
                }
            }
        });
        // HTTP/2 wants an authority even where there is nobody to ask for it.
        let endpoint = tuned(Endpoint::from_static("http://in-memory"));
        let connected = endpoint.connect_with_connector(connector).await;
        connected.map_err(|source| Error::Connect {
            address: "in-memory".to_owned(),
            source,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn addresses() {
        for good in [
            "10.0.0.1:9559",
            "http://leaf-1:50001",
            "unix:/run/switch.sock",
            "[::1]:9559",
        ] {
            assert!(endpoint(good, None).is_ok(), "{good}");
        }
        let text = endpoint("not an address", None).unwrap_err().to_string();
        assert!(
            text.starts_with("`not an address` is not an address"),
            "{text}"
        );
        let secure = endpoint("leaf-1:9559", Some(&Tls::default())).unwrap();
        assert_eq!(secure.uri().scheme_str(), Some("https"));
        let broken = Tls {
            ca: Some(b"-----BEGIN CERTIFICATE-----\nx\n".to_vec()),
            ..Tls::default()
        };
        assert!(endpoint("leaf-1:9559", Some(&broken)).is_err());
    }

    #[tokio::test]
    async fn nobody_there() {
        let error = connect("127.0.0.1:1").await.unwrap_err().to_string();
        assert!(
            error.contains("127.0.0.1:1") && error.contains("refused"),
            "{error}"
        );
        let (connector, incoming) = in_memory();
        drop(incoming);
        assert!(connector.channel().await.is_err());
    }
}
