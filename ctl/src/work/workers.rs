//! The workers of all queues: they are started, changed and stopped one by one, without a pause for the others.

use super::job::{Handle, Job};
use super::lack::NotDone;
use super::log::Log;
use super::process;
use crate::server::{Failure, Outcome};
use crate::text::messages;
use dq_client::{blocking::Client, blocking::Worker, Context, Event, Metrics, Pool, Raw, Stopped, Stopper};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

/// At the end of the grace period, handlers are ended and their messages given back, which takes a moment.
const TO_GIVE_BACK: Duration = Duration::from_secs(5);
/// How long a handler that lacks a resource keeps its message: the next delivery may come to this worker again.
const LACKING: Duration = Duration::from_millis(500);
/// How long a queue keeps a reduced concurrency before it is raised again.
const FEWER: Duration = Duration::from_secs(30);
/// How often such queues are looked for.
const LOOK: Duration = Duration::from_secs(5);

/// What [`Workers::run`] acts on.
pub enum Notice {
    /// SIGHUP.
    Reload,
    /// SIGTERM or SIGINT.
    Stop,
    /// The worker of this queue has stopped.
    Stopped(String, Stopped),
    /// A handler of this queue lacked what the system refused.
    Lacking(String, String),
}

/// The workers that run, by queue. They can be asked from other threads.
#[derive(Clone, Default)]
pub struct Running(Arc<Mutex<BTreeMap<String, QueueWorker>>>);

impl Running {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, QueueWorker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether each queue can be popped.
    pub fn reached(&self) -> Vec<(String, bool)> {
        let is_up = |worker: &QueueWorker| !worker.is_interrupted.load(Relaxed) && worker.running.is_healthy();
        self.lock().iter().map(|(queue, worker)| (queue.clone(), is_up(worker))).collect()
    }
}

/// The workers of some queues.
pub struct Workers {
    client: Client,
    pub metrics: Metrics,
    notices: Sender<Notice>,
    log: Log,
    pub running: Running,
    /// Workers that were asked to stop, until all of them have stopped.
    stoppers: Vec<Stopper>,
    /// How many of these have not stopped yet.
    stopping: usize,
    abandoned: usize,
    /// How many outcomes of messages the server has not accepted.
    unreported: u64,
    /// Whether a second signal ended the grace period.
    is_forced: bool,
}

/// The worker of one queue.
struct QueueWorker {
    job: Job,
    running: dq_client::blocking::Running,
    is_interrupted: Arc<AtomicBool>,
    /// How many messages it takes at a time, and since when: fewer than its job allows while the system lacks a
    /// resource.
    taking: (usize, Instant),
    /// When it was last logged that it lacks a resource although it takes one message at a time.
    lacked: Option<Instant>,
    /// The handler of the next message.
    handle: Arc<RwLock<Handle>>,
}

/// A job that can be done: its command or its URL is valid.
type Ready = (Job, Handle);

impl Workers {
    /// No workers yet. Notices are received by [`Workers::run`].
    pub fn new(client: &Client, log: Log, notices: Sender<Notice>) -> Workers {
        Workers {
            client: client.clone(),
            log,
            metrics: Metrics::default(),
            notices,
            running: Running::default(),
            stoppers: Vec::new(),
            stopping: 0,
            abandoned: 0,
            unreported: 0,
            is_forced: false,
        }
    }

    /// Starts, changes and stops workers, so that they do these jobs and no others. If a job cannot be done, returns an
    /// error and changes nothing. Returns how many workers were started, changed and stopped.
    pub fn set(&mut self, jobs: Vec<Job>) -> Result<(usize, usize, usize), Failure> {
        let ready: Vec<Ready> = jobs
            .into_iter()
            .map(|job| Ok((job.clone(), job.handle(&self.client, self.log)?)))
            .collect::<Result<_, Failure>>()?;
        let is_wanted = |queue: &String| ready.iter().any(|(job, _)| job.queue == *queue);
        let unwanted: Vec<String> = self.running.lock().keys().filter(|queue| !is_wanted(queue)).cloned().collect();
        let (kept, new): (Vec<_>, Vec<_>) =
            ready.into_iter().partition(|(job, _)| self.running.lock().contains_key(&job.queue));
        // The new ones first: if they cannot be started, because there are no threads left for example, the others go
        // on.
        let mut started: Vec<String> = Vec::new();
        for ready in new {
            let queue = ready.0.queue.clone();
            if let Err(failure) = self.start(ready) {
                started.iter().for_each(|queue| self.stop(queue));
                return Err(failure);
            }
            started.push(queue);
        }
        let mut changed = 0;
        for ready in kept {
            let mut running = self.running.lock();
            if let Some(worker) = running.get_mut(&ready.0.queue).filter(|worker| worker.job != ready.0) {
                worker.change(ready)?;
                changed += 1;
            }
        }
        for queue in &unwanted {
            self.stop(queue);
        }
        Ok((started.len(), changed, unwanted.len()))
    }

    /// Runs until it is told to stop and all workers have stopped. `reload` sets new jobs.
    pub fn run(mut self, notices: &Receiver<Notice>, reload: impl Fn(&mut Workers)) -> Result<Outcome, Failure> {
        let mut ending = false;
        let mut looks_at = Instant::now() + LOOK;
        loop {
            // `self` holds a sender, so this fails only when the time is over.
            let notice = notices.recv_timeout(looks_at.saturating_duration_since(Instant::now()));
            // Notices may come again and again, of one queue that still lacks something.
            if Instant::now() >= looks_at {
                self.take_more();
                looks_at = Instant::now() + LOOK;
            }
            let Ok(notice) = notice else { continue };
            match notice {
                Notice::Lacking(queue, what) => self.take_fewer(&queue, &what),
                Notice::Reload if !ending => reload(&mut self),
                Notice::Reload => {}
                Notice::Stop if !ending => {
                    ending = true;
                    let all: Vec<String> = self.running.lock().keys().cloned().collect();
                    all.iter().for_each(|queue| self.stop(queue));
                }
                // The second time, running handlers are not waited for.
                Notice::Stop => self.stoppers.iter().for_each(Stopper::stop),
                Notice::Stopped(queue, stopped) => {
                    self.say_stopped(&queue, stopped);
                    self.stopping -= 1;
                    self.abandoned += stopped.abandoned;
                    self.unreported += stopped.unreported as u64;
                    self.is_forced |= stopped.forced;
                    if self.stopping == 0 {
                        self.stoppers.clear();
                    }
                }
            }
            if ending && self.stopping == 0 {
                break;
            }
        }
        process::kill_all();
        if self.abandoned > 0 {
            let text = "handlers were ended before their messages could be given back: they are delivered again when \
                        their leases expire";
            return Err(Failure::failed(format!("{} {text}", self.abandoned)));
        }
        if self.unreported > 0 {
            let text = "what is neither acknowledged nor given back is delivered again when its lease expires";
            return Err(Failure::failed(format!("could not report {}: {text}", messages(self.unreported))));
        }
        if self.is_forced {
            return Err(Failure::failed(
                "handlers were ended before their grace period was over; their messages were given back",
            ));
        }
        Ok(Outcome::Done)
    }

    /// A queue takes half as many messages at a time, once for all handlers that lacked something together.
    fn take_fewer(&self, queue: &str, what: &str) {
        let mut running = self.running.lock();
        let Some(worker) = running.get_mut(queue) else { return };
        let (before, since) = worker.taking;
        let is_new = before == worker.job.concurrency || since.elapsed() > 2 * LACKING;
        if before > 1 && is_new {
            worker.take(before / 2);
            self.say_taking("fewer", worker, Some(what));
        } else if before == 1 && worker.lacked.is_none_or(|at| at.elapsed() >= FEWER) {
            worker.lacked = Some(Instant::now());
            self.say_taking("fewer", worker, Some(what));
        }
    }

    /// Queues that have taken fewer for a while take twice as many.
    fn take_more(&self) {
        for worker in self.running.lock().values_mut() {
            let (now, since) = worker.taking;
            if now < worker.job.concurrency && since.elapsed() >= FEWER {
                worker.take((now * 2).min(worker.job.concurrency));
                self.say_taking("more", worker, None);
            }
        }
    }

    fn say_taking(&self, event: &str, worker: &QueueWorker, error: Option<&str>) {
        let (queue, concurrency) = (&worker.job.queue, worker.taking.0);
        let why = error.map(|error| format!(", since {error}")).unwrap_or_default();
        let text = format!("{queue}: {concurrency} at a time from now on{why}");
        let fields = json!({ "queue": queue, "concurrency": concurrency, "error": error });
        match error {
            Some(_) => self.log.warn(event, &text, fields),
            None => self.log.info(event, &text, fields),
        }
    }

    fn say_stopped(&self, queue: &str, stopped: Stopped) {
        let text = format!("{queue}: stopped; {} went back", messages(stopped.given_back as u64));
        let (given_back, unreported) = (stopped.given_back, stopped.unreported);
        let fields = json!({ "queue": queue, "given_back": given_back, "unreported": unreported });
        self.log.info("stopped", &text, fields);
    }

    fn start(&mut self, (job, handle): Ready) -> Result<(), Failure> {
        let handle = Arc::new(RwLock::new(handle));
        let current = Arc::clone(&handle);
        let is_interrupted = Arc::new(AtomicBool::new(false));
        let (log, interrupted) = (self.log, Arc::clone(&is_interrupted));
        let (notices, queue) = (self.notices.clone(), job.queue.clone());
        let mut pool = Pool::new(job.concurrency).queue(&job.queue).meta();
        if let Some(lease) = job.how.lease {
            pool = pool.lease(lease);
        }
        let running = Worker::new(self.client.clone())
            .metrics_in(&self.metrics)
            .grace(job.how.grace + TO_GIVE_BACK)
            .on_event(move |event| {
                match event {
                    Event::Interrupted { .. } => interrupted.store(true, Relaxed),
                    Event::Resumed { .. } => interrupted.store(false, Relaxed),
                    _ => {}
                }
                log.event(event);
            })
            .pool(pool, move |Raw(payload), context: Context| {
                let handle = Arc::clone(&current.read().unwrap_or_else(PoisonError::into_inner));
                log.handler(&context, None);
                let begun = Instant::now();
                match handle(&payload, &context) {
                    Ok(result) => {
                        log.handler(&context, Some(begun.elapsed()));
                        Ok(result)
                    }
                    Err(NotDone::Failed(failure)) => Err(failure),
                    Err(NotDone::Lacking(what)) => {
                        let _ = notices.send(Notice::Lacking(queue.clone(), what));
                        thread::sleep(LACKING);
                        Err(dq_client::Failure::give_back())
                    }
                }
            })
            .start()?;
        let taking = (job.concurrency, Instant::now());
        let worker = QueueWorker { job, running, is_interrupted, taking, lacked: None, handle };
        self.running.lock().insert(worker.job.queue.clone(), worker);
        Ok(())
    }

    /// Stops the worker of a queue. Its running handlers get their grace period; this does not wait for them.
    fn stop(&mut self, queue: &str) {
        let removed = self.running.lock().remove(queue);
        let Some(QueueWorker { running, .. }) = removed else { return };
        let stopper = running.stopper();
        stopper.stop();
        self.stoppers.push(stopper);
        self.stopping += 1;
        let (notices, of) = (self.notices.clone(), queue.to_owned());
        let join = move || {
            let _ = notices.send(Notice::Stopped(of, running.join()));
        };
        if let Err(error) = thread::Builder::new().name("dq-join".to_owned()).spawn(join) {
            // The worker stops by itself when it is dropped.
            let text = format!("{queue}: cannot wait for its handlers: {error}");
            self.log.warn("not-awaited", &text, json!({ "queue": queue, "error": error.to_string() }));
            self.stopping -= 1;
        }
    }
}

impl QueueWorker {
    /// Takes effect from the next message on. Running handlers are not affected.
    fn change(&mut self, (job, handle): Ready) -> Result<(), Failure> {
        *self.handle.write().unwrap_or_else(PoisonError::into_inner) = handle;
        self.running.set_lease(&job.queue, job.how.lease);
        self.running.set_grace(job.how.grace + TO_GIVE_BACK);
        let resized = self.running.set_concurrency(&job.queue, job.concurrency);
        self.taking = (job.concurrency, Instant::now());
        self.job = job;
        Ok(resized?)
    }

    fn take(&mut self, concurrency: usize) {
        // It is refused threads at most, and then takes fewer anyway.
        let _ = self.running.set_concurrency(&self.job.queue, concurrency);
        self.taking = (concurrency, Instant::now());
    }
}
