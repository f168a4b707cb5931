//! How clients reach the service: TCP, TLS, memory.

use std::future::Future;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use p4runtime::v1::p4_runtime_server::P4RuntimeServer;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::net::TcpListener;
use tokio_stream::Stream;
use tonic::service::Routes;
use tonic::transport::server::Connected;
use tonic::transport::{Channel, Endpoint, ServerTlsConfig, Uri};

use super::Server;
use super::accept::Accepted;
use crate::manage::CountRpcs;

/// Largest header list a client of [`Server::channel`] takes: error details of large batches
/// come in trailers.
const HEADERS_MAX: u32 = 16 << 20;
/// A client that vanished without a word is noticed after twice this long, and its place as
/// primary becomes free.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// Bytes of requests that a connection may have on their way to us.
const CONNECTION_WINDOW: u32 = 4 << 20;
/// Bytes on their way, per direction of an in-memory connection.
const DUPLEX_BUFFER: usize = 64 << 10;

/// Why serving ended.
#[derive(Debug, thiserror::Error)]
#[error("the P4Runtime server ended: {0}")]
pub struct ServeError(#[from] tonic::transport::Error);

impl Server {
    /// Serves the connections of a listener until `stop` is ready; with TLS if configured.
    ///
    /// # Errors
    /// When the certificates do not fit, or the listener fails.
    pub async fn serve(
        &self,
        listener: TcpListener,
        tls: Option<ServerTlsConfig>,
        stop: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        self.serve_with(listener, tls, Routes::default(), CountRpcs::default(), stop)
            .await
    }

    /// [`serve`](Self::serve), with `more` services on the same connections, and every call
    /// counted.
    ///
    /// # Errors
    /// As with `serve`.
    pub async fn serve_with(
        &self,
        listener: TcpListener,
        tls: Option<ServerTlsConfig>,
        more: Routes,
        count: CountRpcs,
        stop: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let mut builder = self
            .builder()
            .layer(count)
            .http2_keepalive_interval(Some(KEEPALIVE))
            .http2_keepalive_timeout(Some(KEEPALIVE));
        if let Some(tls) = tls {
            builder = builder.tls_config(tls)?;
        }
        let incoming = Accepted::from(listener, self.shared.config.max_connections);
        let router = builder.add_routes(more.add_service(self.grpc()));
        // Not gracefully: clients keep their streams open for as long as there is a server.
        tokio::select! {
            result = router.serve_with_incoming(incoming) => Ok(result?),
            () = stop => Ok(()),
        }
    }

    /// Serves connections of any kind until there are no more.
    ///
    /// # Errors
    /// When accepting fails.
    pub async fn serve_incoming<I, IO>(&self, incoming: I) -> Result<(), ServeError>
    where
        I: Stream<Item = std::io::Result<IO>>,
        IO: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
    {
        let router = self.builder().add_service(self.grpc());
        Ok(router.serve_with_incoming(incoming).await?)
    }

    /// A channel to this server through memory, which reconnects when it breaks. Must be called
    /// within a tokio runtime, on which the connection is then served.
    pub fn channel(&self) -> Channel {
        let server = self.clone();
        let connector = tower::service_fn(move |_: Uri| {
            let server = server.clone();
            async move { Ok::<_, std::io::Error>(TokioIo::new(server.accept())) }
        });
        Endpoint::from_static("http://in-memory.switch")
            .http2_max_header_list_size(HEADERS_MAX)
            .connect_with_connector_lazy(connector)
    }

    /// The client's end of a new in-memory connection.
    fn accept(&self) -> DuplexStream {
        let (ours, theirs) = tokio::io::duplex(DUPLEX_BUFFER);
        let server = self.clone();
        tokio::spawn(async move {
            let one = tokio_stream::once(Ok(ours));
            if let Err(error) = server.serve_incoming(one).await {
                tracing::debug!(%error, "in-memory connection");
            }
        });
        theirs
    }

    fn builder(&self) -> tonic::transport::Server {
        tonic::transport::Server::builder()
            .max_concurrent_streams(Some(self.shared.config.max_calls))
            .initial_connection_window_size(Some(CONNECTION_WINDOW))
    }

    fn grpc(&self) -> P4RuntimeServer<super::P4RuntimeService> {
        P4RuntimeServer::new(self.service())
            .max_decoding_message_size(self.shared.config.max_request)
    }
}
