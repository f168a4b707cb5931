//! `meridian-switch`: the softswitch as a program, with the command line of simple_switch_grpc.

mod args;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use p4runtime::info::Index;
use softswitch::ports::{Forwarder, ForwarderConfig, Waker};
use softswitch::server::{Clock, RealClock, Server, ServerConfig};
use softswitch::{Program, Switch, SwitchConfig};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tonic::transport::{Certificate, Identity, ServerTlsConfig};

use args::Args;

/// An error that ends the program: what failed, and why.
type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let args = match Args::read(std::env::args()) {
        Ok(args) => args,
        Err(error) => error.exit(),
    };
    if let Err(error) = start_log(&args) {
        eprintln!("meridian-switch: {error}");
        return ExitCode::FAILURE;
    }
    for note in args.ignored() {
        tracing::warn!("ignored {note}");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build();
    let result = runtime
        .map_err(Failure::from)
        .and_then(|runtime| runtime.block_on(run(&args)));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("meridian-switch: {error}");
            ExitCode::FAILURE
        }
    }
}

fn start_log(args: &Args) -> Result<(), Failure> {
    let builder = tracing_subscriber::fmt()
        .with_target(false)
        .with_ansi(false);
    if let Some(path) = &args.log_file {
        let mut name = path.clone().into_os_string();
        name.push(".txt");
        let path = PathBuf::from(name);
        let file = fs::File::create(&path)
            .map_err(|e| format!("cannot write the log {}: {e}", path.display()))?;
        builder
            .with_max_level(args.log_level.filter())
            .with_writer(Mutex::new(file))
            .init();
    } else if args.log_console {
        builder.with_max_level(args.log_level.filter()).init();
    } else {
        let filter = tracing_subscriber::filter::LevelFilter::WARN;
        builder
            .with_max_level(filter)
            .with_writer(std::io::stderr)
            .init();
    }
    Ok(())
}

async fn run(args: &Args) -> Result<(), Failure> {
    let clock: Arc<dyn Clock> = Arc::new(RealClock::default());
    let switch = Arc::new(Mutex::new(Switch::new(SwitchConfig {
        device_id: args.device_id,
        cpu_port: args.cpu_port,
        drop_port: args.drop_port,
        queues: args.priority_queues,
        queue_depth: args.queue_depth,
        seed: args.seed,
        ..SwitchConfig::default()
    })));
    let waker: Arc<OnceLock<Waker>> = Arc::default();
    let notify = {
        let waker = waker.clone();
        move || {
            if let Some(waker) = waker.get() {
                waker.wake();
            }
        }
    };
    let server = Server::new(
        switch,
        ServerConfig {
            clock: clock.clone(),
            notify: Some(Arc::new(notify)),
            ..ServerConfig::default()
        },
    );
    if let Some(path) = &args.program {
        load(&server, path, args.p4info.as_deref()).await?;
    }
    let tls = tls(args)?;
    let address = args.listen_address()?;
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::AddrInUse => format!(
                "{address} is in use, by another switch perhaps; choose another address with \
             --grpc-server-addr"
            ),
            _ => format!("cannot listen on {address}: {error}"),
        })?;
    let mut forwarder = Forwarder::open(
        server.clone(),
        clock,
        &args.interfaces,
        &ForwarderConfig::default(),
    )?;
    if let Some(folder) = &args.pcap {
        forwarder
            .capture(folder)
            .map_err(|e| format!("cannot write pcap files to {}: {e}", folder.display()))?;
    }
    let _ = waker.set(forwarder.waker());
    if args.device_id == 0 {
        tracing::warn!("device id 0 is what unset means in P4Runtime; some clients refuse it");
    }
    tracing::info!(
        %address,
        device_id = args.device_id,
        ports = args.interfaces.len(),
        "P4Runtime server listening"
    );
    serve(server, forwarder, listener, tls).await
}

/// Serves until a signal comes or the forwarding thread fails.
async fn serve(
    server: Server,
    mut forwarder: Forwarder,
    listener: TcpListener,
    tls: Option<ServerTlsConfig>,
) -> Result<(), Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let waker = forwarder.waker();
    let (mut interrupt, mut terminate) = (
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
    );
    let (ended, forwarding_ended) = tokio::sync::oneshot::channel();
    let thread = {
        let stop = stop.clone();
        std::thread::Builder::new()
            .name("forward".into())
            .spawn(move || {
                let result = forwarder.run(&stop);
                let _ = ended.send(());
                (forwarder, result)
            })?
    };
    let until = async {
        tokio::select! {
            _ = interrupt.recv() => tracing::info!("interrupted; stopping"),
            _ = terminate.recv() => tracing::info!("terminated; stopping"),
            _ = forwarding_ended => {}
        }
    };
    let served = server.serve(listener, tls, until).await;
    stop.store(true, Ordering::Release);
    waker.wake();
    match thread.join() {
        Ok((forwarder, result)) => {
            for info in forwarder.ports().list() {
                tracing::info!(
                    port = info.port,
                    received = info.stats.received,
                    sent = info.stats.sent,
                    send_drops = info.stats.send_drops,
                    "port"
                );
            }
            result.map_err(|e| format!("forwarding ended: {e}"))?;
        }
        Err(_) => return Err("the forwarding thread panicked".into()),
    }
    Ok(served?)
}

async fn load(server: &Server, json: &Path, p4info: Option<&Path>) -> Result<(), Failure> {
    let read =
        |path: &Path| fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()));
    let program = read(json)?;
    let Some(path) = p4info else {
        let program = Program::load(&program).map_err(|e| format!("{}: {e}", json.display()))?;
        let mut switch = server
            .switch()
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        switch.install(Arc::new(program));
        return Ok(());
    };
    let text = String::from_utf8(read(path)?).map_err(|_| {
        format!(
            "{} is not text; P4Info is wanted in text form",
            path.display()
        )
    })?;
    let index = Index::parse_text(&text).map_err(|e| format!("{}: {e}", path.display()))?;
    server.install(index.p4info().clone(), program).await?;
    Ok(())
}

fn tls(args: &Args) -> Result<Option<ServerTlsConfig>, Failure> {
    let (true, Some(cert), Some(key)) = (
        args.grpc_server_ssl,
        &args.grpc_server_cert,
        &args.grpc_server_key,
    ) else {
        return Ok(None);
    };
    let read =
        |path: &Path| fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()));
    let mut tls = ServerTlsConfig::new().identity(Identity::from_pem(read(cert)?, read(key)?));
    if let Some(authority) = &args.grpc_server_cacert {
        tls = tls
            .client_ca_root(Certificate::from_pem(read(authority)?))
            .client_auth_optional(!args.grpc_server_with_client_auth);
    }
    Ok(Some(tls))
}
