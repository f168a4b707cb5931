//! `meridian-switch`: the softswitch as a program, with the command line of simple_switch_grpc.

mod args;
mod client;
mod hashes;
mod limits;
mod offline;
mod trace;

use std::fs;
use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use p4runtime::info::Index;
use softswitch::manage::metrics::Metrics;
use softswitch::manage::{CountRpcs, RpcCounts, SwitchControlService};
use softswitch::ports::{Forwarder, ForwarderConfig, Waker};
use softswitch::server::{Clock, RealClock, Server, ServerConfig};
use softswitch::{Program, SharedSwitch, Switch};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tonic::service::Routes;
use tonic::transport::{Certificate, Identity, ServerTlsConfig};

use args::Args;

/// An error that ends the program: what failed, and why.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The newest version of bmv2's JSON that is understood.
const JSON_VERSION: &str = "2.23";
/// How long unfinished work may keep the program from ending.
const STOP_LIMIT: Duration = Duration::from_millis(300);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    if client::is_meant(&words) {
        return block_on(client::run(words));
    }
    if offline::is_meant(&words) {
        return block_on(offline::run(words));
    }
    let args = match Args::read(words.into_iter()) {
        Ok(args) => args,
        Err(error) => error.exit(),
    };
    if args.json_version {
        println!("{JSON_VERSION}");
        return ExitCode::SUCCESS;
    }
    if let Err(error) = start_log(&args) {
        eprintln!("meridian-switch: {error}");
        return ExitCode::FAILURE;
    }
    for note in args.ignored() {
        tracing::warn!("ignored {note}");
    }
    block_on(run(&args))
}

/// Runs a task to its end; says why if it failed.
fn block_on(task: impl Future<Output = Result<(), Failure>>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build();
    let result = match runtime {
        Ok(runtime) => {
            let result = runtime.block_on(task);
            // What is still at work, such as loading a program, is not waited for.
            runtime.shutdown_timeout(STOP_LIMIT);
            result
        }
        Err(error) => Err(error.into()),
    };
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
    let mut switch = Switch::new(trace::config(args));
    if let Some(format) = args.trace {
        switch.set_trace_sink(Some(trace::printer(format)));
    }
    limits::apply(
        &mut switch,
        &args.queue_depth,
        &args.queue_rate,
        &args.port_rate,
    );
    let switch = SharedSwitch::new(switch);
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
    if let Some(path) = args.program.as_ref().filter(|_| !args.no_p4) {
        load(&server, path, args.p4info.as_deref()).await?;
    }
    let tls = tls(args)?;
    let listener = listen("--grpc-server-addr", args.listen_address()?).await?;
    let metrics_listener = match args.metrics_address()? {
        Some(address) => Some(listen("--metrics", address).await?),
        None => None,
    };
    let forwarder = open_ports(&server, clock, args)?;
    let _ = waker.set(forwarder.waker());
    if args.device_id == 0 {
        tracing::warn!("device id 0 is what unset means in P4Runtime; some clients refuse it");
    }
    tracing::info!(
        address = %listener.local_addr()?,
        device_id = args.device_id,
        ports = args.interfaces.len(),
        workers = forwarder.workers(),
        "P4Runtime server listening"
    );
    let rpcs = RpcCounts::default();
    if let Some(listener) = metrics_listener {
        tracing::info!(address = %listener.local_addr()?, "metrics");
        let metrics = Metrics {
            server: server.clone(),
            ports: forwarder.ports(),
            rpcs: rpcs.clone(),
            workers: forwarder.workers(),
        };
        tokio::spawn(metrics.serve(listener));
    }
    serve(server, forwarder, listener, tls, CountRpcs(rpcs)).await
}

async fn listen(flag: &str, address: SocketAddr) -> Result<TcpListener, Failure> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => format!(
            "{address} is in use, by another switch perhaps; choose another address with {flag}"
        )
        .into(),
        _ => format!("{flag}: cannot listen on {address}: {error}").into(),
    })
}

fn open_ports(server: &Server, clock: Arc<dyn Clock>, args: &Args) -> Result<Forwarder, Failure> {
    let config = ForwarderConfig {
        workers: match args.trace {
            // One packet's way at a time is told.
            Some(_) => Some(1),
            None => args.workers.map(usize::from),
        },
        dump: args.dump_packet_data,
    };
    if let Some(seconds) = args.use_files {
        let wait = u64::try_from(seconds).unwrap_or(0);
        let start = clock
            .now()
            .saturating_add(wait.saturating_mul(1_000_000_000));
        let (server, folder) = (server.clone(), Path::new(""));
        let opened = Forwarder::open_files(server, clock, &args.interfaces, folder, start, &config);
        return opened.map_err(|error| format!("--use-files: {error}").into());
    }
    let mut forwarder = Forwarder::open(server.clone(), clock, &args.interfaces, &config)?;
    if let Some(folder) = &args.pcap {
        forwarder
            .capture(folder)
            .map_err(|e| format!("--pcap: cannot write files in {}: {e}", folder.display()))?;
    }
    Ok(forwarder)
}

/// Serves until a signal comes or the forwarding threads fail.
async fn serve(
    server: Server,
    mut forwarder: Forwarder,
    listener: TcpListener,
    tls: Option<ServerTlsConfig>,
    count: CountRpcs,
) -> Result<(), Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let (waker, ports) = (forwarder.waker(), forwarder.ports());
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
                result
            })?
    };
    let until = async {
        tokio::select! {
            _ = interrupt.recv() => tracing::info!("interrupted; stopping"),
            _ = terminate.recv() => tracing::info!("terminated; stopping"),
            _ = forwarding_ended => {}
        }
    };
    let control = SwitchControlService::new(server.clone(), ports.clone(), waker.clone());
    let more = Routes::new(control.grpc());
    let served = server.serve_with(listener, tls, more, count, until).await;
    stop.store(true, Ordering::Release);
    waker.wake();
    let result = thread.join();
    for info in ports.list() {
        tracing::info!(
            port = info.port,
            received = info.stats.received,
            sent = info.stats.sent,
            send_drops = info.stats.send_drops,
            "port"
        );
    }
    match result {
        Ok(result) => result.map_err(|e| format!("forwarding ended: {e}"))?,
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
        server.switch().lock().install(Arc::new(program));
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
