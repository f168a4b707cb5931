//! Counts the calls of a gRPC server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tonic::codegen::http::Request;
use tower::{Layer, Service};

/// Different methods that are counted each for itself: clients choose the names.
const METHODS_MAX: usize = 64;

/// How often each method was called, by its path, such as `/p4.v1.P4Runtime/Write`.
#[derive(Clone, Debug, Default)]
pub struct RpcCounts(Arc<Mutex<BTreeMap<String, u64>>>);

impl RpcCounts {
    /// The counts so far.
    pub fn list(&self) -> BTreeMap<String, u64> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn count(&self, path: &str) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(path) {
            *count += 1;
        } else if counts.len() < METHODS_MAX {
            counts.insert(path.to_owned(), 1);
        } else {
            *counts.entry("other".to_owned()).or_default() += 1;
        }
    }
}

/// Has a server's calls counted.
#[derive(Clone, Debug, Default)]
pub struct CountRpcs(pub RpcCounts);

impl<S> Layer<S> for CountRpcs {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted {
            inner,
            counts: self.0.clone(),
        }
    }
}

/// A service whose calls are counted.
#[derive(Clone, Debug)]
pub struct Counted<S> {
    inner: S,
    counts: RpcCounts,
}

impl<S, B> Service<Request<B>> for Counted<S>
where
    S: Service<Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> S::Future {
        self.counts.count(request.uri().path());
        self.inner.call(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_counted_and_bounded() {
        let counts = RpcCounts::default();
        for i in 0..METHODS_MAX + 9 {
            counts.count(&format!("/x/{i}"));
            counts.count("/x/0");
        }
        let list = counts.list();
        assert_eq!(list["/x/0"], METHODS_MAX as u64 + 10);
        assert_eq!(list["other"], 9);
        assert_eq!(list.len(), METHODS_MAX + 1);
    }
}
