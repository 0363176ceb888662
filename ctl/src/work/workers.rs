//! The workers of all queues: they are started, changed and stopped one by one, without a pause for the others.

use super::handler::Processes;
use super::job::{Handle, Job};
use crate::failure::{Failure, Outcome};
use crate::visible::visible;
use dq_client::{Client, Context, Metrics, Pool, Raw, Running, Stopper, Worker};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

/// At the end of the grace period, handlers are ended and their messages given back, which takes a moment.
const TO_GIVE_BACK: Duration = Duration::from_secs(5);

/// What the crew is told.
pub enum News {
    /// SIGHUP.
    Reload,
    /// SIGTERM or SIGINT.
    Stop,
    /// A worker has stopped, and so many handlers were ended before their messages could be given back.
    Left(usize),
}

/// The workers of some queues.
pub struct Crew {
    client: Client,
    metrics: Metrics,
    news: Sender<News>,
    members: BTreeMap<String, Member>,
    /// The workers that are about to stop.
    leaving: Vec<Stopper>,
    /// How many of these have not stopped yet.
    still_here: usize,
    abandoned: usize,
}

/// The worker of one queue.
struct Member {
    job: Job,
    running: Running,
    /// What is done with the next message.
    handle: Arc<RwLock<Handle>>,
    processes: Arc<Processes>,
}

/// A job that can be done: its command or its URL is valid.
struct Ready {
    job: Job,
    handle: Handle,
    processes: Arc<Processes>,
}

impl Crew {
    /// No workers yet. The news are sent to whoever calls [`Crew::run`].
    pub fn new(client: &Client, news: Sender<News>) -> Crew {
        Crew {
            client: client.clone(),
            metrics: Metrics::default(),
            news,
            members: BTreeMap::new(),
            leaving: Vec::new(),
            still_here: 0,
            abandoned: 0,
        }
    }

    pub fn metrics(&self) -> Metrics {
        self.metrics.clone()
    }

    /// Lets these jobs be done and no others: starts, changes and stops workers. A job that cannot be done is an error, and
    /// nothing changes. Returns how many were started, changed and stopped.
    pub fn set(&mut self, jobs: Vec<Job>) -> Result<(usize, usize, usize), Failure> {
        let ready: Vec<Ready> = jobs.into_iter().map(|job| self.prepare(job)).collect::<Result<_, _>>()?;
        let is_wanted = |queue: &String| ready.iter().any(|ready| ready.job.queue == *queue);
        let unwanted: Vec<String> = self.members.keys().filter(|queue| !is_wanted(queue)).cloned().collect();
        let (kept, new): (Vec<_>, Vec<_>) =
            ready.into_iter().partition(|ready| self.members.contains_key(&ready.job.queue));
        // The new ones first: if they cannot be started, for want of threads for example, those that are there go on.
        let mut started: Vec<String> = Vec::new();
        for ready in new {
            let queue = ready.job.queue.clone();
            if let Err(failure) = self.start(ready) {
                started.iter().for_each(|queue| self.dismiss(queue));
                return Err(failure);
            }
            started.push(queue);
        }
        let mut changed = 0;
        for ready in kept {
            if let Some(member) = self.members.get_mut(&ready.job.queue).filter(|member| member.job != ready.job) {
                member.change(ready)?;
                changed += 1;
            }
        }
        for queue in &unwanted {
            self.dismiss(queue);
        }
        Ok((started.len(), changed, unwanted.len()))
    }

    /// Works until it is told to stop, and all workers have stopped. `reload` says which jobs are to be done from now on.
    pub fn run(mut self, news: &Receiver<News>, reload: impl Fn(&mut Crew)) -> Result<Outcome, Failure> {
        let mut stopping = false;
        // The crew itself holds a sender, so there will always be news.
        while let Ok(new) = news.recv() {
            match new {
                News::Reload if !stopping => reload(&mut self),
                News::Reload => {}
                News::Stop if !stopping => {
                    stopping = true;
                    let all: Vec<String> = self.members.keys().cloned().collect();
                    all.iter().for_each(|queue| self.dismiss(queue));
                }
                // The second time, running handlers are not waited for.
                News::Stop => self.leaving.iter().for_each(Stopper::stop),
                News::Left(abandoned) => {
                    self.still_here -= 1;
                    self.abandoned += abandoned;
                    if self.still_here == 0 {
                        self.leaving.clear();
                    }
                }
            }
            if stopping && self.still_here == 0 {
                break;
            }
        }
        if self.abandoned > 0 {
            let text = "handlers were ended before their messages could be given back: they are delivered again when their leases end";
            return Err(Failure::failed(format!("{} {text}", self.abandoned)));
        }
        Ok(Outcome::Done)
    }

    fn prepare(&self, job: Job) -> Result<Ready, Failure> {
        let processes = self.members.get(&job.queue).map_or_else(Arc::default, |member| Arc::clone(&member.processes));
        let handle = job.handle(&self.client, &processes)?;
        Ok(Ready { job, handle, processes })
    }

    fn start(&mut self, Ready { job, handle, processes }: Ready) -> Result<(), Failure> {
        let handle = Arc::new(RwLock::new(handle));
        let current = Arc::clone(&handle);
        let pool = Pool::new(job.hands).queue(&job.queue).lease(job.lease);
        let running = Worker::new(self.client.clone())
            .metrics_in(&self.metrics)
            .grace(job.grace + TO_GIVE_BACK)
            .on_event(|event| eprintln!("dqctl: {}", visible(&event.to_string())))
            .pool(pool, move |Raw(payload), context: &Context| {
                let handle = Arc::clone(&current.read().unwrap_or_else(PoisonError::into_inner));
                handle(&payload, context)
            })
            .start()?;
        self.members.insert(job.queue.clone(), Member { job, running, handle, processes });
        Ok(())
    }

    /// Stops the worker of a queue. Its running handlers get their grace period, and nobody waits for that here.
    fn dismiss(&mut self, queue: &str) {
        let Some(Member { running, processes, .. }) = self.members.remove(queue) else { return };
        let stopper = running.stopper();
        stopper.stop();
        self.leaving.push(stopper);
        self.still_here += 1;
        let news = self.news.clone();
        let leave = move || {
            let stopped = running.join();
            processes.end_all();
            let _ = news.send(News::Left(stopped.abandoned));
        };
        if let Err(error) = thread::Builder::new().name("dq-leave".to_owned()).spawn(leave) {
            // The worker stops by itself when it is dropped.
            eprintln!("dqctl: {}: cannot wait for its handlers: {error}", visible(queue));
            self.still_here -= 1;
        }
    }
}

impl Member {
    /// From the next message on. Handlers that run go on as they began.
    fn change(&mut self, ready: Ready) -> Result<(), Failure> {
        let Ready { job, handle, .. } = ready;
        *self.handle.write().unwrap_or_else(PoisonError::into_inner) = handle;
        self.running.set_lease(&job.queue, job.lease);
        self.running.set_grace(job.grace + TO_GIVE_BACK);
        let hands = self.running.set_hands(&job.queue, job.hands);
        self.job = job;
        Ok(hands?)
    }
}
