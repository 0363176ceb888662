//! Commands on messages that meet a condition, and queues that are closed.

use crate::support::in_both_protocols;
use dq_client::{DeadFilter, Error, Flow, Queue, Reason, State};
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
