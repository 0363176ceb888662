//! Groups: messages that are delivered in order.

use crate::support::Server;
use dq_client::blocking::Queue;
use dq_client::{GroupOrder, Settings, State};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn messages_of_a_group_are_delivered_one_at_a_time() {
    let server = Server::start();
    let queue: Queue<u8> = server.client().queue("q");
    queue.push_all(&[1, 2]).group("ann").send().unwrap();
    queue.push(&3).group("bob").send().unwrap();
    let pop = || queue.pop().one().unwrap();
    let (first, second) = (pop().unwrap(), pop().unwrap());
    assert_eq!((first.payload().unwrap(), second.payload().unwrap(), pop().is_none()), (1, 3, true));
    let info = queue.info().unwrap().unwrap();
    assert_eq!((info.groups, info.blocked), (2, 1));
    assert_eq!(queue.get(&first.id).unwrap().unwrap().group.as_deref(), Some("ann"));
    queue.ack(&first).unwrap();
    assert_eq!(pop().unwrap().payload().unwrap(), 2);
}

#[test]
fn groups_take_turns_if_the_queue_says_so() {
    let server = Server::start();
    let queue: Queue<u8> = server.client().queue("q");
    let turns = Settings { group_order: Some(GroupOrder::Turn), group_inflight: Some(0), ..Settings::default() };
    queue.declare(&turns).unwrap();
    queue.push_all(&[1, 2, 3]).group("ann").send().unwrap();
    queue.push_all(&[11, 12]).group("bob").send().unwrap();
    let order: Vec<u8> = (0..5).map(|_| queue.pop().one().unwrap().unwrap().payload().unwrap()).collect();
    assert_eq!(order, [1, 11, 2, 12, 3]);
}

#[test]
fn one_group_can_be_looked_at_and_purged() {
    let server = Server::start();
    let queue: Queue<u8> = server.client().queue("q");
    for number in 0..150 {
        queue.push(&number).group(format!("g{number}")).delay(HOUR).send().unwrap();
    }
    queue.push_all(&[200, 201]).group("g7").send().unwrap();
    queue.schedule("tick", &202).every(HOUR).group("g7").send().unwrap();
    queue.push(&203).send().unwrap();
    queue.pop().one().unwrap().unwrap();
    let mut groups: Vec<_> = queue.groups().map(Result::unwrap).collect();
    groups.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(groups.len(), 150);
    let seventh = groups.iter().find(|group| group.name == b"g7").unwrap();
    assert_eq!((seventh.waiting, seventh.occupied, seventh.oldest_due.is_some()), (3, 1, true));
    let group = queue.group("g7");
    assert_eq!((group.len(None).unwrap(), group.len(Some(State::Ready)).unwrap()), (4, 1));
    assert_eq!(group.peek(State::Ready, 5).unwrap().remove(0).payload().unwrap(), 201);
    assert_eq!(group.purge(&[State::Inflight, State::Ready], Some(10)).unwrap(), 2);
    // The schedule stays.
    assert_eq!((group.purge(&[], None).unwrap(), queue.len(None).unwrap()), (1, 151));
}
