//! Ctrl-C and SIGTERM.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// Waits for a signal that ends the command. From its creation on, such signals no
/// longer kill the process.
pub(crate) struct Stop {
    interrupt: Signal,
    terminate: Signal,
}

impl Stop {
    /// Takes over the signals.
    pub(crate) fn listen() -> Result<Self, Failure> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).map_err(Failure::run)?,
            terminate: signal(SignalKind::terminate()).map_err(Failure::run)?,
        })
    }

    /// Resolves when a signal comes.
    pub(crate) async fn asked(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Runs `work` unless a signal comes first; then `work` is dropped.
    pub(crate) async fn unless<T>(
        &mut self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        tokio::select! {
            biased;
            () = self.asked() => Err(Failure::Interrupted),
            done = work => done,
        }
    }
}
