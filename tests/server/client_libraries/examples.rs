//! The consumer in `examples/`: it executes each message once and stops cleanly.
//!
//! It runs unchanged except for a few numbers.

use crate::support::clients::{left_out, run};
use crate::support::{eventually, root, Client, Server};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const QUEUE: &str = "orders:close";
/// How many messages one consumer works on at the same time.
const CONCURRENCY: usize = 6;

/// What is changed in the example: a lease of 4 seconds and work of 5, so that the lease must be extended; a wait of a
/// minute, so that nothing ends by itself; and more patience with a server that is suspended. It takes one message at a
/// time, so several are run.
const CHANGES: [(&str, &str); 4] = [
    ("lease=30", "lease=4"),
    ("block=5", "block=60"),
    ("sleep 1 # stands", "sleep 5 # stands"),
    ("timeout 0.5", "timeout 5"),
];

/// The example as it is run here, made ready once; `None` without `redis-cli`.
fn example() -> Option<&'static Path> {
    static EXAMPLE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let prepare = || {
        if run(Command::new("redis-cli").arg("--version")).is_err() {
            left_out("examples/consumer.sh", "redis-cli is not here");
            return None;
        }
        let mut text = std::fs::read_to_string(root().join("examples/consumer.sh")).expect("the example");
        for (from, to) in CHANGES {
            assert_eq!(text.matches(from).count(), 1, "it says {from:?} once");
            text = text.replace(from, to);
        }
        let script = Path::new(env!("CARGO_TARGET_TMPDIR")).join("consumer.sh");
        // A concurrent test run may be using it: a shell reads its script while it runs.
        if std::fs::read_to_string(&script).ok() != Some(text.clone()) {
            std::fs::write(&script, text).expect("written");
        }
        Some(script)
    };
    EXAMPLE.get_or_init(prepare).as_deref()
}

/// Consumers that handle `CONCURRENCY` messages at a time. Dropping them kills them.
struct Consumer {
    processes: Vec<Child>,
    output: PathBuf,
}

impl Consumer {
    /// Starts one, and waits until all of its threads wait for a message.
    fn start(example: &Path, server: &Server) -> Consumer {
        let consumer = Consumer::start_at_work(example, server);
        let mut c = server.client();
        eventually("the consumer waits", || waiting(&mut c) == CONCURRENCY);
        consumer
    }

    fn start_at_work(example: &Path, server: &Server) -> Consumer {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let output = server.dir().join(format!("consumer-{}", NEXT.fetch_add(1, Ordering::Relaxed)));
        let file = File::options().create(true).append(true).open(&output).expect("a file for the output");
        let spawn = |_| {
            let mut command = Command::new("bash");
            command.arg(example).arg(server.port().to_string()).stdin(Stdio::null());
            command.stdout(file.try_clone().expect("the file")).stderr(file.try_clone().expect("the file"));
            command.spawn().expect("bash")
        };
        Consumer { processes: (0..CONCURRENCY).map(spawn).collect(), output }
    }

    /// Sends SIGTERM.
    fn terminate(&self) {
        let kill =
            self.processes.iter().fold("kill -s TERM".to_owned(), |line, child| format!("{line} {}", child.id()));
        run(Command::new("sh").args(["-c", &kill])).unwrap_or_else(|problem| panic!("{problem}"));
    }

    /// Waits until it has ended, without an error.
    fn end(mut self) -> String {
        for child in &mut self.processes {
            eventually("the consumer ends", || child.try_wait().expect("its status").is_some());
            assert!(child.wait().expect("its status").success(), "{}", self.said());
        }
        self.said()
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.output).expect("its output")
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        let has_ended = |child: &mut Child| child.try_wait().is_ok_and(|status| status.is_some());
        if self.processes.iter_mut().all(has_ended) {
            return;
        }
        eprintln!("the consumer said:\n{}", self.said());
        for child in &mut self.processes {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Runs a test with the example.
fn with_example(test: impl Fn(&Path, &Server)) {
    if let Some(example) = example() {
        test(example, &Server::start());
    }
}

fn waiting(c: &mut Client) -> usize {
    c.info("dq", "dq_blocked_clients").parse().expect("a number")
}

fn count(c: &mut Client, state: &str) -> i64 {
    c.ask(format!("DQ.LEN {QUEUE} {state}")).int()
}

fn push(c: &mut Client, orders: std::ops::RangeInclusive<usize>) {
    for n in orders {
        c.ask(format!("DQ.PUSH {QUEUE} order-{n} ID m{n}"));
    }
}

/// How often work on an order began.
fn begun(said: &str) -> usize {
    said.matches("closing order-").count()
}

#[test]
fn the_example_executes_each_message_once_though_work_outlasts_the_lease() {
    with_example(|example, server| {
        let mut c = server.client();
        let busy = Consumer::start(example, server);
        let idle = Consumer::start_at_work(example, server);
        eventually("both wait", || waiting(&mut c) == 2 * CONCURRENCY);
        push(&mut c, 1..=10);
        // Two threads are idle all the time: they get a message as soon as its lease expires.
        eventually("all is done", || c.ask(format!("DQ.LEN {QUEUE}")).int() == 0);
        busy.terminate();
        idle.terminate();
        let said = busy.end() + &idle.end();
        for n in 1..=10 {
            assert_eq!(said.matches(&format!("closing order-{n}\n")).count(), 1, "{said}");
        }
        let about = c.ask(format!("DQ.INFO {QUEUE}")).fields();
        assert_eq!((about.int("acked"), about.int("lease-expired")), (10, 0), "{said}");
    });
}

#[test]
fn the_idle_example_ends_within_a_second_of_sigterm() {
    with_example(|example, server| {
        // A machine that is busy with other tests may hold up any of them, but not all.
        eventually("one of them ends within a second", || {
            let consumer = Consumer::start(example, server);
            let asked = Instant::now();
            consumer.terminate();
            consumer.end();
            asked.elapsed() < Duration::from_secs(1)
        });
    });
}

#[test]
fn the_idle_example_ends_while_writes_are_paused() {
    with_example(|example, server| {
        let mut c = server.client();
        c.ask("CLIENT PAUSE 600000 WRITE");
        let consumer = Consumer::start_at_work(example, server);
        let mut put_off = || c.ask("CLIENT LIST").text().matches(" cmd=DQ.POP ").count();
        eventually("all pops are put off", || put_off() == CONCURRENCY);
        consumer.terminate();
        consumer.end();
        c.ask("CLIENT UNPAUSE");
        push(&mut c, 1..=1);
        assert_eq!(c.pop(QUEUE).len(), 1, "the server lives, and no consumer is left");
    });
}

#[test]
fn the_busy_example_finishes_and_leaves_nothing_in_flight() {
    with_example(|example, server| {
        let mut c = server.client();
        push(&mut c, 1..=10);
        let consumer = Consumer::start_at_work(example, server);
        eventually("every thread works", || begun(&consumer.said()) == CONCURRENCY);
        assert_eq!(count(&mut c, "inflight"), CONCURRENCY as i64, "no more was popped than there are idle threads");
        consumer.terminate();
        let said = consumer.end();
        assert_eq!((count(&mut c, "inflight"), count(&mut c, "ready")), (0, 10 - CONCURRENCY as i64), "{said}");
        assert_eq!(begun(&said), CONCURRENCY, "{said}");
    });
}

#[test]
fn the_example_gives_back_what_comes_together_with_sigterm() {
    with_example(|example, server| {
        let (mut c, mut other) = (server.client(), server.client());
        let consumer = Consumer::start(example, server);
        // While the server stands still the push arrives first, then the signal, then what the consumer asks for.
        server.signal("STOP");
        other.send(format!("DQ.PUSH {QUEUE} order-1 ID m1"));
        consumer.terminate();
        eventually("it stops", || consumer.said().contains("stopping"));
        server.signal("CONT");
        other.receive();
        let said = consumer.end();
        assert_eq!((count(&mut c, "ready"), begun(&said)), (1, 0), "{said}");
        assert_eq!(c.ask(format!("DQ.GET {QUEUE} m1")).fields().int("attempt"), 0, "{said}");
    });
}

#[test]
fn the_example_tells_its_work_that_the_lease_is_lost() {
    with_example(|example, server| {
        let mut c = server.client();
        let consumer = Consumer::start(example, server);
        push(&mut c, 1..=1);
        eventually("it works", || begun(&consumer.said()) == 1);
        c.ask(format!("DQ.CANCEL {QUEUE} m1"));
        eventually("the work knows", || consumer.said().contains("lease was lost"));
        // Work that is finished after its lease was lost is too late, so the consumer had stopped it before.
        assert!(!consumer.said().contains("too late"), "{}", consumer.said());
        eventually("all threads wait again", || waiting(&mut c) == CONCURRENCY);
        consumer.terminate();
        consumer.end();
    });
}

#[test]
fn the_example_goes_on_after_a_broken_connection() {
    with_example(|example, server| {
        let mut c = server.client();
        let consumer = Consumer::start(example, server);
        c.ask("CLIENT KILL TYPE normal");
        eventually("all threads wait again", || waiting(&mut c) == CONCURRENCY);
        push(&mut c, 1..=1);
        eventually("it works", || begun(&consumer.said()) == 1);
        consumer.terminate();
        consumer.end();
        assert_eq!(c.ask(format!("DQ.LEN {QUEUE}")).int(), 0);
    });
}
