//! Keeps panics in the code of the program, such as its handlers and observers, away from the tasks of the worker.

use std::any::Any;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// Runs code of the program. Returns `None` if it panics.
pub(super) fn guarded<R>(code: impl FnOnce() -> R) -> Option<R> {
    catch_unwind(AssertUnwindSafe(code)).map_err(discard).ok()
}

/// A panic of which only the text is left: dropping what it has carried may panic once more.
pub(super) struct Panic {
    pub text: String,
}

impl From<Box<dyn Any + Send>> for Panic {
    fn from(carried: Box<dyn Any + Send>) -> Panic {
        let text = carried.downcast_ref::<&str>().copied();
        let text = text.or_else(|| carried.downcast_ref::<String>().map(String::as_str));
        let text = text.unwrap_or("no message").to_owned();
        discard(carried);
        Panic { text }
    }
}

/// Drops what a panic has carried, which may panic once more.
fn discard(panic: Box<dyn Any + Send>) {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        // So might this one.
        std::mem::forget(another);
    }
}

#[cfg(test)]
mod tests {
    use super::guarded;

    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new(Bomb));
        }
    }

    #[test]
    fn a_panic_whose_payload_panics_goes_no_further() {
        assert_eq!(guarded(|| 7), Some(7));
        assert_eq!(guarded(|| std::panic::resume_unwind(Box::new(Bomb))), None::<()>);
    }
}
