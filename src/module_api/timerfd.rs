//! A timer of the kernel that wakes the server's event loop at a time of day.
//!
//! The server's own timers count whole milliseconds, and the event loop rounds its waits up again, so they fire up to
//! two milliseconds late. A `timerfd` fires within microseconds. It only wakes the loop: file events are handled before
//! timers, so a timer of the server that its callback creates with a period of 0 fires in the same iteration, and its
//! callback may do all that a timer's callback may.
//!
//! The descriptor follows the time of day and not a monotonic clock. If the time of day is set, it wakes the loop too.

use std::ffi::{c_int, c_void};
use std::fs::File;
use std::io::{self, Read};
#[cfg(target_os = "linux")]
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

#[cfg(target_os = "linux")]
use redis_module::raw;

/// The callback of a descriptor: the descriptor, the data, which is always null, and the events for which it is ready.
pub type EventLoopCallback = unsafe extern "C" fn(c_int, *mut c_void, c_int);

/// A descriptor that becomes readable when its time has come. It is closed when it is dropped.
pub struct TimerFd(File);

impl TimerFd {
    /// Reads the timer, so that it is readable again only when a newly set time has come or the time of day is set. A
    /// callback must begin with this; otherwise the server calls it without end.
    pub fn acknowledge(&self) {
        // Both results are expected: the number of expirations, or ECANCELED after the time of day was set. Neither
        // says more than a look at the clock. If another read came first, this is EAGAIN.
        let _ = (&self.0).read(&mut [0; size_of::<u64>()]);
    }
}

#[cfg(target_os = "linux")]
impl TimerFd {
    /// Creates a timer that is not set. An error says why this is not possible.
    pub fn create() -> io::Result<TimerFd> {
        // SAFETY: takes no pointers.
        let fd = unsafe { libc::timerfd_create(libc::CLOCK_REALTIME, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just created, and nothing else owns it.
        let timer = TimerFd(File::from(unsafe { OwnedFd::from_raw_fd(fd) }));
        // A sandbox may allow the first call and not the second one.
        timer.set(0)?;
        Ok(timer)
    }

    /// Sets the timer to a time of day, as Unix time in milliseconds, instead of any earlier setting; 0 disarms it. A
    /// time in the past fires at once.
    pub fn set(&self, at_ms: u64) -> io::Result<()> {
        self.settime(libc::TFD_TIMER_ABSTIME | libc::TFD_TIMER_CANCEL_ON_SET, Duration::from_millis(at_ms))
    }

    /// Sets the timer to the instant after `wait`, instead of any earlier setting; zero disarms it. If the time of day
    /// is set meanwhile, the timer does not change.
    pub fn set_after(&self, wait: Duration) -> io::Result<()> {
        self.settime(0, wait)
    }

    fn settime(&self, flags: c_int, value: Duration) -> io::Result<()> {
        let sec = libc::time_t::try_from(value.as_secs()).map_err(io::Error::other)?;
        let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let mut at = libc::itimerspec { it_interval: zero, it_value: zero };
        at.it_value.tv_sec = sec;
        // Below 10^9, which every type of this field can represent.
        at.it_value.tv_nsec = value.subsec_nanos() as _;
        // SAFETY: the descriptor is open, the structure is valid during the call, and the old value is not asked for.
        if unsafe { libc::timerfd_settime(self.0.as_raw_fd(), flags, &raw const at, std::ptr::null_mut()) } == 0 {
            return Ok(());
        }
        match io::Error::last_os_error() {
            // The timer is set despite this error, which reports that the time of day was set since the last read.
            error if error.raw_os_error() == Some(libc::ECANCELED) => Ok(()),
            error => Err(error),
        }
    }

    /// Makes the server call `callback` in its event loop, on the main thread, as long as the timer is readable.
    ///
    /// The server keeps the callback for ever, so this must not be called before the load of the module is certain to
    /// succeed, and the timer must not be dropped afterwards.
    pub fn watch(&self, callback: EventLoopCallback) -> io::Result<()> {
        // SAFETY: the static is read by value.
        let Some(add) = (unsafe { raw::RedisModule_EventLoopAdd }) else {
            return Err(io::Error::other("the server has no RM_EventLoopAdd"));
        };
        let readable = raw::REDISMODULE_EVENTLOOP_READABLE as c_int;
        // SAFETY: the descriptor is open, and the callback ignores its data.
        match unsafe { add(self.0.as_raw_fd(), readable, Some(callback), std::ptr::null_mut()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Only Linux has this timer.
#[cfg(not(target_os = "linux"))]
impl TimerFd {
    /// Fails.
    pub fn create() -> io::Result<TimerFd> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Fails.
    pub fn set(&self, _at_ms: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Fails.
    pub fn set_after(&self, _wait: Duration) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Fails.
    pub fn watch(&self, _callback: EventLoopCallback) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::TimerFd;
    use std::os::fd::AsRawFd;
    use std::time::{Duration, Instant, SystemTime};

    /// The poll result for a wait of that many milliseconds; negative waits for ever.
    fn is_readable(timer: &TimerFd, wait_ms: i32) -> bool {
        let mut poll = libc::pollfd { fd: timer.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid structure.
        unsafe { libc::poll(&raw mut poll, 1, wait_ms) == 1 }
    }

    fn now_ms() -> u64 {
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() as u64
    }

    #[test]
    fn it_becomes_readable_when_its_time_has_come_and_never_before() {
        let timer = TimerFd::create().unwrap();
        assert!(!is_readable(&timer, 0));
        let at = now_ms() + 30;
        timer.set(at).unwrap();
        assert!(is_readable(&timer, -1));
        assert!(now_ms() >= at);
        timer.acknowledge();
        assert!(!is_readable(&timer, 0));
    }

    #[test]
    fn it_becomes_readable_after_a_wait_and_never_before() {
        let timer = TimerFd::create().unwrap();
        let (began, wait) = (Instant::now(), Duration::from_micros(2_500));
        timer.set_after(wait).unwrap();
        assert!(is_readable(&timer, -1));
        assert!(began.elapsed() >= wait);
    }

    #[test]
    fn the_past_has_come_at_once_and_the_last_instant_never() {
        let timer = TimerFd::create().unwrap();
        timer.set(1).unwrap();
        assert!(is_readable(&timer, -1));
        timer.set((1 << 44) - 1).unwrap();
        assert!(!is_readable(&timer, 0));
        timer.set(1).unwrap();
        timer.set(0).unwrap();
        assert!(!is_readable(&timer, 0), "disarmed");
    }
}
