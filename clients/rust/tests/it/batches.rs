//! Batches: what follows when all of a batch are done.

use crate::support::Server;
use dq_client::blocking::{Client, Queue};
use std::time::Duration;

#[test]
fn a_message_follows_when_all_of_a_batch_have_ended() {
    for protocol in [2, 3] {
        let server = Server::start();
        let client = Client::open(&format!("{}?protocol={protocol}", server.url())).unwrap();
        let queue: Queue<u8> = client.queue("q");
        let batch = queue.batch("b");
        assert_eq!(batch.info().unwrap(), None);
        queue.push_all(&[1, 2]).batch("b").send().unwrap();
        let then = batch.then(&9).id("follows").priority(1).retries(2).group("g").header("a", "1");
        assert_eq!(then.lease(Duration::from_secs(5)).send().unwrap(), 2);
        let first = queue.pop().meta().one().unwrap().unwrap();
        assert_eq!(first.meta.as_ref().unwrap().batch.as_deref(), Some("b"));
        assert_eq!(queue.get(&first.id).unwrap().unwrap().batch.as_deref(), Some("b"));
        assert!(queue.ack(&first).unwrap());
        let info = batch.info().unwrap().unwrap();
        assert_eq!((info.total, info.left, info.acked, info.closed), (2, 1, 1, true));
        assert_eq!((info.then, info.then_id), (Some(b"9".to_vec()), Some("follows".into())));
        assert_eq!(queue.info().unwrap().unwrap().batches, 1);
        let second = queue.pop().one().unwrap().unwrap();
        assert!(queue.ack(&second).unwrap());
        let follows = queue.get("follows").unwrap().unwrap();
        assert_eq!((follows.payload().unwrap(), follows.group.as_deref(), follows.retries), (9, Some("g"), 2));
        assert_eq!((follows.headers.text("dq-batch-acked"), follows.headers.text("a")), (Some("2"), Some("1")));
    }
}

#[test]
fn a_cancelled_batch_is_gone_with_its_messages() {
    let server = Server::start();
    let queue: Queue<u8> = server.client().queue("q");
    queue.push(&1).batch("b").send().unwrap();
    let then = queue.batch("b").then(&2).delay(Duration::from_secs(3600));
    assert_eq!(then.send().unwrap(), 1);
    assert_eq!(queue.batch("b").cancel().unwrap(), 1);
    assert_eq!((queue.len(None).unwrap(), queue.batch("b").info().unwrap()), (0, None));
}
