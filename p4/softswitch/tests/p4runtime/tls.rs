//! The service over TLS, and with certificates of the clients too.

use p4runtime::v1::{self, p4_runtime_client::P4RuntimeClient};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::net::TcpListener;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity, ServerTlsConfig};

use super::common::{Bench, DEVICE};

/// An authority.
fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate that the authority signed, with its key.
fn identity(authority: &CertifiedIssuer<'static, KeyPair>, name: &str) -> Identity {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    Identity::from_pem(certificate.pem(), key.serialize_pem())
}

async fn serve(bench: &Bench, tls: ServerTlsConfig) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = bench.server.clone();
    tokio::spawn(async move {
        server
            .serve(listener, Some(tls), std::future::pending())
            .await
    });
    address
}

/// The API version, asked for over the connection.
async fn version(address: &str, tls: Option<ClientTlsConfig>) -> Result<String, String> {
    let scheme = if tls.is_some() { "https" } else { "http" };
    let mut endpoint = Endpoint::from_shared(format!("{scheme}://{address}")).unwrap();
    if let Some(tls) = tls {
        endpoint = endpoint.tls_config(tls).unwrap();
    }
    let channel = endpoint.connect().await.map_err(|e| format!("{e:?}"))?;
    let request = v1::CapabilitiesRequest { device_id: DEVICE };
    let answer = P4RuntimeClient::new(channel).capabilities(request).await;
    let answer = answer.map_err(|e| format!("{e:?}"))?;
    Ok(answer.into_inner().p4runtime_api_version)
}

fn trusting(authority: &CertifiedIssuer<'static, KeyPair>) -> ClientTlsConfig {
    ClientTlsConfig::new()
        .ca_certificate(Certificate::from_pem(authority.pem()))
        .domain_name("switch.test")
}

#[tokio::test]
async fn tls() {
    let bench = Bench::new();
    let ours = authority();
    let tls = ServerTlsConfig::new().identity(identity(&ours, "switch.test"));
    let address = serve(&bench, tls).await;
    assert_eq!(
        version(&address, Some(trusting(&ours))).await.unwrap(),
        "1.5.0"
    );
    version(&address, None).await.expect_err("without TLS");
    version(&address, Some(trusting(&authority())))
        .await
        .expect_err("of an authority that the client does not know");
    let other_name = trusting(&ours).domain_name("elsewhere.test");
    version(&address, Some(other_name))
        .await
        .expect_err("of another name");
}

#[tokio::test]
async fn mutual_tls() {
    let bench = Bench::new();
    let ours = authority();
    let tls = ServerTlsConfig::new()
        .identity(identity(&ours, "switch.test"))
        .client_ca_root(Certificate::from_pem(ours.pem()));
    let address = serve(&bench, tls).await;
    let client = |issuer| trusting(&ours).identity(identity(issuer, "controller.test"));
    assert_eq!(
        version(&address, Some(client(&ours))).await.unwrap(),
        "1.5.0"
    );
    version(&address, Some(trusting(&ours)))
        .await
        .expect_err("without a certificate");
    version(&address, Some(client(&authority())))
        .await
        .expect_err("of an authority that the switch does not know");
}
