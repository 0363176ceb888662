//! How messages and runs end in rare cases, as the pages say.

use dq_queue::forward::{Forward, Source};
use dq_queue::id::{Floor, Id, Target};
use dq_queue::rule::Rule;
use dq_queue::settings::{Retries, Settings};
use dq_queue::time::{DurationMs, UnixMs};
use dq_queue::{
    Due, Lease, Nack, NewMessage, OnDuplicate, Pop, Pushed, Queue, Reschedule, Schedule, Scheduled, Series, Shown,
    Spare, State, StateKind, States, ToPurge, Verdict,
};

fn at(ms: u64) -> UnixMs {
    UnixMs::new(1_760_000_000_000 + ms)
}

fn with_schedules(states: States) -> ToPurge {
    ToPurge { spare: Spare::Nothing, ..ToPurge::all(states) }
}

fn ms(ms: u64) -> DurationMs {
    DurationMs::new(ms)
}

/// A queue and the floor of its ids.
struct Server {
    queue: Queue,
    floor: Floor,
}

impl Server {
    fn new(settings: Settings) -> Server {
        Server { queue: Queue::new(settings), floor: Floor::default() }
    }

    fn push(&mut self, now: u64, message: &NewMessage<'_>) -> bool {
        matches!(self.queue.push(at(now), &mut self.floor, message), Pushed::Added { .. })
    }

    fn pop(&mut self, now: u64, lease: Lease) {
        self.queue.pop(at(now), &mut self.floor, &Pop { count: 1, lease }, &mut Vec::new(), |_| ());
    }

    fn schedule(&mut self, now: u64, name: &[u8], times: Option<u64>) {
        let rule = Rule::Every { every: ms(1_000), offset: ms(0) };
        let schedule = Schedule {
            name,
            payload: b"run",
            series: Series { rule, until: None, times },
            first: Some(at(now)),
            priority: 0,
            retries: None,
            lease: None,
            ttl: None,
            group: None,
            headers: None,
        };
        let scheduled = self.queue.schedule(at(now), &mut self.floor, &schedule);
        assert!(matches!(scheduled, Scheduled::Created(_) | Scheduled::Changed(_)), "{scheduled:?}");
    }

    fn nack(&mut self, now: u64, name: &[u8], verdict: Verdict) {
        self.queue.nack(at(now), &target(name), &Nack { verdict, ..Nack::default() }).expect("it is in flight");
    }

    fn state(&self, now: u64, name: &[u8]) -> State {
        self.queue.get(at(now), &Id::Named(name)).expect("it is held").state
    }

    /// The attempts that the only dead message shows.
    fn attempts_of_dead(&self, now: u64) -> u32 {
        let dead = self.queue.peek(at(now), StateKind::Dead, 2);
        match dead.as_slice() {
            [one] => match self.queue.show(at(now), *one) {
                Some(Shown::Message(message)) => message.record.attempts,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }
}

fn target(name: &[u8]) -> Target<'_> {
    Target::parse(name).unwrap()
}

fn named(name: &[u8]) -> NewMessage<'_> {
    NewMessage { name: Some(name), ..NewMessage::default() }
}

#[test]
fn a_kept_message_dies_when_its_ttl_ends_however_the_delivery_ends() {
    type Ending = fn(&mut Server);
    let endings: [Ending; 4] = [
        |_| (),
        |server| assert!(server.queue.ack(at(40), &target(b"m")).is_some()),
        |server| server.nack(40, b"m", Verdict::Failed),
        |server| assert!(server.queue.bury(at(40), &Id::Named(b"m"), None).is_some()),
    ];
    for ending in endings {
        let mut server = Server::new(Settings::default());
        server.push(0, &named(b"m"));
        server.pop(0, Lease::For(ms(50)));
        server.push(0, &NewMessage { on_duplicate: OnDuplicate::ReplaceLater, ttl: Some(ms(10)), ..named(b"m") });
        assert_eq!(server.state(49, b"m"), State::InFlight);
        ending(&mut server);
        assert!(matches!(server.state(50, b"m"), State::Dead { died, .. } if died == at(10)));
    }
}

#[test]
fn a_schedule_goes_on_with_the_window_of_its_id() {
    let settings = Settings { dedupe: ms(10_000), ..Settings::default() };
    let window_after = |before: fn(&mut Server)| {
        let mut server = Server::new(settings);
        before(&mut server);
        server.schedule(100, b"m", Some(1));
        server.pop(100, Lease::NoAck);
        assert_eq!(server.queue.find(at(100), &Id::Named(b"m")), None, "the series is over");
        (server.push(9_999, &named(b"m")), server.push(10_000, &named(b"m")))
    };
    let refused = (false, true);
    assert_eq!(window_after(|server| assert!(server.push(0, &named(b"m")))), refused, "while it waits");
    let done = |server: &mut Server| {
        server.push(0, &named(b"m"));
        server.pop(0, Lease::NoAck);
    };
    assert_eq!(window_after(done), refused, "while it is known");
    let dead = |server: &mut Server| {
        server.push(0, &named(b"m"));
        server.queue.bury(at(1), &Id::Named(b"m"), None);
    };
    assert_eq!(window_after(dead), refused, "while it is dead");
    let cancelled = |server: &mut Server| {
        server.push(0, &named(b"m"));
        server.queue.cancel(at(1), &Id::Named(b"m"));
    };
    assert_eq!(window_after(cancelled), (true, false), "a schedule begins no window, and the push of 9,999 does");
}

#[test]
fn a_run_that_is_given_back_after_its_ttl_counts_no_attempt() {
    let settings = Settings { ttl: ms(10), ..Settings::default() };
    let (mut message, mut series) = (Server::new(settings), Server::new(settings));
    message.push(0, &named(b"m"));
    series.schedule(0, b"m", None);
    for server in [&mut message, &mut series] {
        server.pop(0, Lease::For(ms(1_000)));
        server.nack(20, b"m", Verdict::NotCounted);
        assert_eq!(server.attempts_of_dead(20), 0);
        let totals = server.queue.totals();
        assert_eq!((totals.nacked, totals.given_back, totals.died), (0, 1, 1));
    }
}

#[test]
fn what_is_given_back_uncounted_is_no_failure() {
    let mut server = Server::new(Settings { retries: Retries::new(5).unwrap(), ..Settings::default() });
    for later in [false, true] {
        server.push(0, &named(b"m"));
        server.pop(0, Lease::Default);
        if later {
            server.push(0, &NewMessage { on_duplicate: OnDuplicate::ReplaceLater, ..named(b"m") });
        }
        server.nack(0, b"m", Verdict::NotCounted);
        server.pop(0, Lease::Default);
        server.nack(0, b"m", Verdict::Failed);
        server.queue.cancel(at(0), &Id::Named(b"m"));
    }
    assert_eq!((server.queue.totals().nacked, server.queue.totals().given_back), (2, 2));
}

#[test]
fn a_purge_passes_over_schedules_unless_it_names_them() {
    for others in [1, 100] {
        let mut server = Server::new(Settings::default());
        server.schedule(0, b"runs", None);
        server.pop(0, Lease::Default);
        for name in [&b"waits"[..], b"fails"] {
            server.schedule(1, name, None);
        }
        (0..others).for_each(|_| assert!(server.push(2, &NewMessage::default())));
        let mut first = Server { queue: server.queue.duplicate().unwrap(), floor: server.floor };
        let purged = first.queue.purge(at(2), &ToPurge { count: Some(1_000), ..ToPurge::all(States::ALL) });
        assert_eq!(purged.count, others);
        assert_eq!(server.queue.purge(at(2), &ToPurge::all(States::ALL)), purged);
        assert_eq!(server.queue.counts().total(), 3);
        assert_eq!(server.queue.purge(at(2), &ToPurge::all(States::ALL)).count, 0);
        assert_eq!(server.queue.ack(at(3), &target(b"runs")).map(|acked| acked.next), Some(None));
        assert_eq!(server.queue.purge(at(3), &with_schedules(States::only(StateKind::Ready))).count, 2);
        assert_eq!(server.queue.purge(at(3), &with_schedules(States::ALL)).count, 1);
    }
}

#[test]
fn a_burial_of_a_waiting_schedule_skips_its_next_time() {
    let mut server = Server::new(Settings::default());
    server.schedule(0, b"s", None);
    server.pop(0, Lease::NoAck);
    let due = |server: &Server| server.queue.get(at(1), &Id::Named(b"s")).unwrap().record.due;
    assert_eq!(due(&server), at(1_000));
    assert!(server.queue.bury(at(1), &Id::Named(b"s"), None).is_some());
    assert_eq!(due(&server), at(2_000));
}

#[test]
fn a_priority_given_to_a_schedule_holds_for_one_run() {
    let mut server = Server::new(Settings::default());
    server.schedule(0, b"s", None);
    let to = Reschedule { due: None, priority: Some(7) };
    assert!(server.queue.reschedule(at(0), &Id::Named(b"s"), &to).is_some());
    let priority = |server: &Server| server.queue.get(at(1), &Id::Named(b"s")).unwrap().record.priority;
    assert_eq!(priority(&server), 7);
    server.pop(0, Lease::NoAck);
    assert_eq!(priority(&server), 0);
}

#[test]
fn a_replacement_of_a_kept_message_goes_on_with_its_chain() {
    let mut server = Server::new(Settings::default());
    server.push(0, &named(b"m"));
    server.pop(0, Lease::For(ms(1_000)));
    let due = Some(Due::After(ms(500)));
    server.push(100, &NewMessage { on_duplicate: OnDuplicate::ReplaceLater, due, ..named(b"m") });
    server.push(200, &NewMessage { on_duplicate: OnDuplicate::Replace, due, maxwait: Some(ms(300)), ..named(b"m") });
    let message = server.queue.get(at(200), &Id::Named(b"m")).unwrap();
    assert_eq!((message.record.due, message.next), (at(400), false), "300 after the first that was kept");
}

#[test]
fn a_pop_takes_all_retries_of_a_group_whose_limit_was_lowered() {
    let mut server = Server::new(Settings { groupinflight: 3, ..Settings::default() });
    for _ in 0..4 {
        server.push(0, &NewMessage { group: Some(b"g"), ..NewMessage::default() });
    }
    let all = Pop { count: 9, lease: Lease::For(ms(10)) };
    let mut popped = |now| {
        let mut grants = Vec::new();
        server.queue.pop(at(now), &mut server.floor, &all, &mut grants, |_| ());
        server.queue.alter(at(now), Settings { groupinflight: 1, ..Settings::default() });
        grants.len()
    };
    assert_eq!((popped(0), popped(9), popped(10)), (3, 0, 3));
}

#[test]
fn a_group_without_a_limit_shows_no_deliveries() {
    let mut server = Server::new(Settings { groupinflight: 0, ..Settings::default() });
    for _ in 0..2 {
        server.push(0, &NewMessage { group: Some(b"g"), ..NewMessage::default() });
    }
    server.pop(0, Lease::Default);
    let (groups, _) = server.queue.scan_groups(at(0), None, 9);
    assert_eq!((groups[0].waiting, groups[0].occupied), (1, 0));
    assert_eq!(server.queue.counts_of_group(at(0), b"g").inflight, 1);
}

#[test]
fn a_delivery_is_shown_in_the_group_of_the_message_kept_beside_it() {
    let mut server = Server::new(Settings::default());
    server.push(0, &NewMessage { group: Some(b"old"), ..named(b"m") });
    server.pop(0, Lease::For(ms(10)));
    server.push(0, &NewMessage { group: Some(b"new"), on_duplicate: OnDuplicate::ReplaceLater, ..named(b"m") });
    assert_eq!(server.queue.get(at(0), &Id::Named(b"m")).unwrap().group, Some(&b"new"[..]));
    assert_eq!(server.queue.peek_group(at(0), b"old", StateKind::InFlight, 9), []);
    assert_eq!(server.queue.peek_group(at(0), b"new", StateKind::InFlight, 9).len(), 1);
    assert_eq!(server.queue.scan_groups(at(0), None, 9).0.len(), 1);
}

#[test]
fn a_forwarded_message_is_kept_as_done() {
    let mut server = Server::new(Settings { retain: ms(100), ..Settings::default() });
    server.queue.forward_to(at(0), Source::Due, Some(Forward::Channel { name: Box::default() }));
    server.push(0, &named(b"m"));
    let mut next = Vec::new();
    server.queue.next_to_forward(at(0), Source::Due, 9, |message| {
        next.push(message.sequence);
        true
    });
    assert_eq!(server.queue.forwarded(at(0), &next, |_| ()), next);
    assert!(server.queue.get_done(at(99), &Id::Named(b"m")).is_some());
    assert!(!server.push(99, &named(b"m")) && server.push(100, &named(b"m")));
}

#[test]
fn an_ended_done_message_is_refused_before_it_is_dropped() {
    let mut server = Server::new(Settings { retain: ms(10), dedupe: ms(100), ..Settings::default() });
    server.push(0, &named(b"m"));
    server.pop(0, Lease::NoAck);
    assert_eq!(server.queue.find(at(10), &Id::Named(b"m")), None);
    assert!(!server.push(10, &named(b"m")));
    assert_eq!((server.queue.known(at(10)), server.queue.counts_at(at(10)).done), (0, 0));
    server.queue.notice(at(10));
    server.queue.trim(9);
    assert_eq!(server.queue.known(at(10)), 1);
    assert!(!server.push(99, &named(b"m")) && server.push(100, &named(b"m")));
}
