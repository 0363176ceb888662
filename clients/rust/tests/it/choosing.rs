//! Commands on messages that meet a condition, and queues that are closed.

use crate::support::in_both_protocols;
use dq_client::blocking::Queue;
use dq_client::{DeadFilter, Error, Flow, GroupPause, Reason, Settings, State};
use std::time::{Duration, SystemTime};

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn messages_are_chosen_by_age_by_reason_or_by_due_time() {
    in_both_protocols(|client| {
        let queue: Queue<u8> = client.queue("q");
        for (id, delay) in [("soon", HOUR), ("late", 3 * HOUR)] {
            queue.push(&1).id(id).delay(delay).send().unwrap();
        }
        assert_eq!(queue.promote_until(SystemTime::now() + 2 * HOUR, Some(5)).unwrap(), 1);
        assert_eq!(queue.get("soon").unwrap().unwrap().state, State::Ready);
        assert_eq!(queue.purge_older(HOUR, &[State::Ready], None).unwrap(), 0);
        queue.bury("soon", None).unwrap();
        let expired = DeadFilter { reason: Some(Reason::Expired), ..DeadFilter::default() };
        let spent = DeadFilter { reason: Some(Reason::Retries), ..DeadFilter::default() };
        let old = DeadFilter { older: Some(HOUR), ..DeadFilter::default() };
        for none in [expired, spent, old] {
            assert_eq!(queue.redrive_dead(&none).unwrap(), 0, "{none:?}");
        }
        let rejected =
            DeadFilter { count: Some(5), older: Some(Duration::ZERO), reason: Some(Reason::Rejected), delay: HOUR };
        assert_eq!(queue.redrive_dead(&rejected).unwrap(), 1);
        assert_eq!(queue.purge_older(Duration::ZERO, &[State::Delayed], Some(5)).unwrap(), 2);
    });
}

#[test]
fn a_paused_group_is_passed_over_and_shown() {
    in_both_protocols(|client| {
        let queue: Queue<u8> = client.queue("q");
        queue.push(&1).group("a").send().unwrap();
        let group = queue.group("a");
        group.pause(None).unwrap();
        assert!(queue.pop().one().unwrap().is_none());
        let shown = |queue: &Queue<u8>| queue.groups().next().unwrap().unwrap();
        assert_eq!((shown(&queue).pause, shown(&queue).next_delivery), (GroupPause::Endless, None));
        group.resume().unwrap();
        assert_eq!(shown(&queue).pause, GroupPause::Off);
        group.pause(Some(HOUR)).unwrap();
        assert!(matches!(shown(&queue).pause, GroupPause::Until(_)));
        group.resume().unwrap();
        queue.alter(&Settings { group_rate: Some((1, HOUR)), ..Settings::default() }).unwrap();
        assert!(queue.pop().one().unwrap().is_some());
        assert!(shown(&queue).next_delivery.is_some());
        assert_eq!(queue.info().unwrap().unwrap().settings.group_rate, Some((1, HOUR)));
    });
}

#[test]
fn a_pop_that_gathers_waits_for_enough() {
    in_both_protocols(|client| {
        let queue: Queue<u8> = client.queue("q");
        queue.push(&1).send().unwrap();
        let gathered = || queue.pop().count(5).gather(2).linger(HOUR).all().unwrap().len();
        assert_eq!(gathered(), 0);
        queue.push(&2).send().unwrap();
        assert_eq!(gathered(), 2);
    });
}

#[test]
fn a_closed_queue_refuses_pushes_until_it_is_resumed() {
    in_both_protocols(|client| {
        let queue: Queue<u8> = client.queue("q");
        queue.push(&1).send().unwrap();
        queue.pause_flow(Flow::In, Some(HOUR)).unwrap();
        let info = queue.info().unwrap().unwrap();
        assert!(info.closed && info.closed_until.is_some() && !info.paused);
        assert!(matches!(queue.push(&2).send(), Err(Error::QueueClosed(_))));
        assert!(queue.pop().one().unwrap().is_some());
        queue.pause_flow(Flow::All, None).unwrap();
        queue.resume_flow(Flow::In).unwrap();
        let info = queue.info().unwrap().unwrap();
        assert!(info.paused && !info.closed);
        queue.pause_flow(Flow::All, None).unwrap();
        queue.resume().unwrap();
        let info = queue.info().unwrap().unwrap();
        assert!(!info.paused && !info.closed);
        queue.push(&2).send().unwrap();
    });
}
