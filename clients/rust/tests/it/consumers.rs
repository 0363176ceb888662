//! Consumers with names.

use crate::support::in_both_protocols;
use dq_client::blocking::Queue;
use dq_client::State;
use std::time::{Duration, SystemTime};

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn a_supervisor_sees_who_holds_what_and_takes_it_back() {
    in_both_protocols(|client| {
        let queue: Queue<u8> = client.queue("q");
        queue.push_all(&[1, 2, 3, 4]).send().unwrap();
        let popped = queue.pop().count(3).lease(HOUR).named("worker-1").all().unwrap();
        client.pop_any([&queue]).lease(HOUR).named("worker-2").send().unwrap();
        let mut consumers = queue.consumers().collect::<Result<Vec<_>, _>>().unwrap();
        consumers.sort_by(|one, other| one.name.cmp(&other.name));
        let held: Vec<_> = consumers.iter().map(|consumer| (&consumer.name[..], consumer.inflight)).collect();
        assert_eq!(held, [(&b"worker-1"[..], 3), (b"worker-2", 1)]);
        assert!(consumers[0].oldest_delivery <= SystemTime::now() + Duration::from_secs(1));
        let message = queue.get(&popped[0].id).unwrap().unwrap();
        assert_eq!((message.state, message.consumer.as_deref()), (State::Inflight, Some("worker-1")));
        assert_eq!(queue.release("worker-1", Some(1)).unwrap(), 1);
        assert_eq!(queue.release_uncounted("worker-1", None).unwrap(), 2);
        assert_eq!(queue.release("nobody", None).unwrap(), 0);
        let again: Vec<u32> = queue.pop().count(9).all().unwrap().iter().map(|message| message.attempt).collect();
        assert_eq!(again, [2, 1, 1]);
    });
}
