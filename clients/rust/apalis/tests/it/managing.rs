//! Looking at tasks, changing them, and waiting for their results.

use crate::{numbers, queue, until_dead, with_server, HOUR};
use apalis_core::backend::{FetchById, Reschedule, ResumeById, TaskSink, Update, Vacuum, WaitForCompletion};
use apalis_core::error::{AbortError, BoxDynError};
use apalis_core::task::builder::TaskBuilder;
use apalis_core::task::status::Status;
use apalis_core::task::task_id::TaskId;
use apalis_core::worker::builder::WorkerBuilder;
use dq_client::{Error, State};
use futures_util::StreamExt;
use std::time::{Duration, SystemTime};

fn id(text: &str) -> TaskId {
    TaskId::from_string(text)
}

#[test]
fn a_task_that_waits_can_be_looked_at_and_changed() {
    with_server(|client| async move {
        let mut storage = numbers(&client);
        storage.push_task(TaskBuilder::new(1).task_id(id("a")).run_in_hours(2).max_attempts(3).build()).await.unwrap();
        let task = storage.fetch_by_id(&id("a")).await.unwrap().unwrap();
        assert_eq!(
            (task.args.as_slice(), task.status(), task.max_attempts()),
            (b"1".as_slice(), Status::Pending, Some(3))
        );
        assert_eq!(task.queue().unwrap().as_ref(), "q");
        assert!(storage.fetch_by_id(&id("b")).await.unwrap().is_none());

        storage.update(task.clone().map_args(|_| b"2".to_vec())).await.unwrap();
        let updated = queue(&client).get("a").await.unwrap().unwrap();
        assert_eq!((updated.bytes(), updated.state, updated.retries), (b"2".as_slice(), State::Delayed, 2));
        let unknown = TaskBuilder::new(b"3".to_vec()).task_id(id("b")).build();
        assert!(matches!(storage.update(unknown).await, Err(Error::Gone(_))));

        storage.reschedule(task.clone(), Duration::from_millis(1500)).await.unwrap();
        assert!(queue(&client).get("a").await.unwrap().unwrap().due < SystemTime::now() + HOUR);
        queue(&client).bury("a", Some("no")).await.unwrap();
        assert!(storage.reschedule(task, HOUR).await.is_err());
        assert!(storage.resume_by_id(id("a")).await.unwrap());
        assert!(!storage.resume_by_id(id("a")).await.unwrap());
    });
}

#[test]
fn results_are_waited_for() {
    with_server(|client| async move {
        let mut storage = numbers(&client).retain(HOUR);
        for (number, name) in [(21, "good"), (0, "bad"), (1, "none")] {
            storage.push_task(TaskBuilder::new(number).task_id(id(name)).build()).await.unwrap();
        }
        let handler = |number: u32| async move {
            match number {
                0 => Err(BoxDynError::from(AbortError::new("zero"))),
                1 => Ok(None),
                number => Ok(Some(2 * number)),
            }
        };
        let results = WaitForCompletion::<Option<u32>>::wait_for(&mut storage, ["good", "bad", "none"].map(id));
        let running = tokio::spawn(WorkerBuilder::new("w").backend(storage.clone()).build(handler).run());
        let mut results: Vec<_> = results.map(Result::unwrap).collect().await;
        results.sort_by_key(|result| result.task_id().to_string());
        let shown: Vec<_> = results.iter().map(|result| (result.status().clone(), result.result().clone())).collect();
        let bad = (Status::Killed, Err("zero".to_owned()));
        assert_eq!(shown, [bad, (Status::Done, Ok(Some(42))), (Status::Done, Ok(None))]);

        let ids = ["good", "other"].map(id);
        let known = WaitForCompletion::<Option<u32>>::check_status(&mut storage, ids).await.unwrap();
        assert_eq!(known.len(), 1);
        let mut gone = WaitForCompletion::<()>::wait_for_single(&mut storage, id("other"));
        assert!(matches!(gone.next().await, Some(Err(Error::Gone(_)))));
        running.abort();
    });
}

#[test]
fn vacuum_removes_what_has_ended() {
    with_server(|client| async move {
        let mut storage = numbers(&client).retain(HOUR);
        storage.push_bulk(vec![0, 1, 2]).await.unwrap();
        let handler = |number: u32| async move { number.checked_sub(1).ok_or(AbortError::new("zero")) };
        let running = tokio::spawn(WorkerBuilder::new("w").backend(storage.clone()).build(handler).run());
        until_dead(&queue(&client), 1).await;
        crate::until_empty(&queue(&client)).await;
        running.abort();
        storage.push(3).await.unwrap();
        assert_eq!(storage.vacuum_before(HOUR).await.unwrap(), 0);
        assert_eq!(storage.vacuum().await.unwrap(), 3);
        assert_eq!(queue(&client).len(None).await.unwrap(), 1);
    });
}
