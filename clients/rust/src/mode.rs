//! How calls are made: asynchronously, or blocking the thread. Both faces have the same methods, which are written
//! once.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::OnceLock;
use std::thread;
use tokio::runtime::{Builder, Handle};
use tokio_util::task::AbortOnDropHandle;

/// How calls are made: [`Async`] or [`Blocking`].
pub trait Mode: private::Sealed + Clone + Send + Sync + 'static {
    /// What a call returns: a future, or the value.
    type Reply<R: Send + 'static>;

    #[doc(hidden)]
    fn run<R: Send + 'static>(io: &Handle, future: impl Future<Output = R> + Send + 'static) -> Self::Reply<R>;
}

/// Calls return futures, and are made when these are awaited, in any runtime.
#[derive(Clone, Copy, Debug)]
pub enum Async {}

/// Calls block the thread until they return. They panic within asynchronous code, which must not be blocked.
#[derive(Clone, Copy, Debug)]
pub enum Blocking {}

mod private {
    pub trait Sealed {}
    impl Sealed for super::Async {}
    impl Sealed for super::Blocking {}
}

impl Mode for Async {
    type Reply<R: Send + 'static> = Pin<Box<dyn Future<Output = R> + Send>>;

    fn run<R: Send + 'static>(io: &Handle, future: impl Future<Output = R> + Send + 'static) -> Self::Reply<R> {
        Box::pin(on(io.clone(), future))
    }
}

impl Mode for Blocking {
    type Reply<R: Send + 'static> = R;

    fn run<R: Send + 'static>(io: &Handle, future: impl Future<Output = R> + Send + 'static) -> R {
        io.block_on(on(io.clone(), future))
    }
}

/// Makes a call in the thread of the connections. In another one, a command could be sent and its connection be lost
/// between two steps of the call, which would then take the command for one that was not sent.
async fn on<R: Send + 'static>(io: Handle, future: impl Future<Output = R> + Send + 'static) -> R {
    match AbortOnDropHandle::new(io.spawn(future)).await {
        Ok(reply) => reply,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The thread never ends, and the task is cancelled only when this is dropped.
            Err(_) => std::future::pending().await,
        },
    }
}

/// The runtime of all connections, on a thread of its own: a runtime of the program that is blocked or ends takes no
/// connection, and no lease, along.
pub(crate) fn io() -> io::Result<Handle> {
    static IO: OnceLock<Handle> = OnceLock::new();
    if let Some(handle) = IO.get() {
        return Ok(handle.clone());
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let run = move || runtime.block_on(std::future::pending::<()>());
    thread::Builder::new().name("dq-io".to_owned()).spawn(run)?;
    // Of two threads that come here at the same time, one makes a runtime that idles.
    Ok(IO.get_or_init(|| handle).clone())
}
