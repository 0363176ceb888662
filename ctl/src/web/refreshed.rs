//! Values that take a while to read: cached, and refreshed in the background when somebody asks for an old one.

use crate::server::failure::Failure;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Reading uses at most 1/SHARE of the time.
const SHARE: u32 = 20;
/// How long a caller waits for a refresh.
const WAIT: Duration = Duration::from_millis(1500);

/// A value that is read by a function in a thread of its own.
pub struct Refreshed<T> {
    shared: Arc<Shared<T>>,
}

type Read<T> = Box<dyn Fn() -> Result<T, Failure> + Send + Sync>;

struct Shared<T> {
    read: Read<T>,
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    value: Option<Arc<T>>,
    error: Option<String>,
    /// When the last reading ended, and how long it took.
    last: Option<(Instant, Duration)>,
    is_reading: bool,
    /// The next caller needs a reading that has not begun yet.
    is_outdated: bool,
}

impl<T: Send + Sync + 'static> Refreshed<T> {
    pub fn new(read: impl Fn() -> Result<T, Failure> + Send + Sync + 'static) -> Refreshed<T> {
        let state = State { value: None, error: None, last: None, is_reading: false, is_outdated: false };
        Refreshed {
            shared: Arc::new(Shared { read: Box::new(read), state: Mutex::new(state), changed: Condvar::new() }),
        }
    }

    /// The value, of this age or younger unless reading takes long; `None` if it was never read. An error if the last reading failed.
    pub fn get_within(&self, age: Duration) -> Result<Option<Arc<T>>, Failure> {
        let mut state = self.shared.lock();
        let is_old = state.is_outdated || state.last.is_none_or(|(at, took)| at.elapsed() > age.max(took * SHARE));
        if is_old && !state.is_reading {
            (state.is_reading, state.is_outdated) = (true, false);
            let shared = Arc::clone(&self.shared);
            let spawned = thread::Builder::new().name("dq-read".to_owned()).spawn(move || shared.refresh());
            if let Err(error) = spawned {
                state.is_reading = false;
                return Err(error.into());
            }
        }
        if is_old {
            let waited = self.shared.changed.wait_timeout_while(state, WAIT, |state| state.is_reading);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        match &state.error {
            Some(error) => Err(Failure::failed(error)),
            None => Ok(state.value.clone()),
        }
    }

    /// Notes that something has changed, so that the next caller starts a reading, however short the time since the last one is. What a
    /// reading that is under way finds may be older than the change, so another one follows it.
    pub fn outdate(&self) {
        self.shared.lock().is_outdated = true;
    }
}

impl<T> Shared<T> {
    fn refresh(&self) {
        let began = Instant::now();
        let read = (self.read)();
        let mut state = self.lock();
        state.is_reading = false;
        match read {
            Ok(value) => {
                state.last = Some((Instant::now(), began.elapsed()));
                (state.value, state.error) = (Some(Arc::new(value)), None);
            }
            // The next caller tries again.
            Err(failure) => (state.error, state.last) = (Some(failure.to_string()), None),
        }
        drop(state);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::Refreshed;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::{mpsc, Mutex};
    use std::time::Duration;

    #[test]
    fn what_changes_during_a_reading_is_read_after_it() {
        let (go, gate) = mpsc::channel::<()>();
        let (gate, reads) = (Mutex::new(gate), AtomicU32::new(0));
        let value = Refreshed::new(move || {
            gate.lock().unwrap().recv().unwrap();
            Ok(reads.fetch_add(1, Ordering::Relaxed))
        });
        let get = || value.get_within(Duration::from_secs(3600)).unwrap().as_deref().copied();
        assert_eq!(get(), None);
        value.outdate();
        go.send(()).unwrap();
        while get() != Some(0) {}
        // This reading had begun before the change.
        go.send(()).unwrap();
        while get() != Some(1) {}
        assert_eq!(get(), Some(1), "and it is not read again");
    }
}
