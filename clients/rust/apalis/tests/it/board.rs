//! What `apalis-board` needs, and the checks that apalis has for backends.

use crate::{numbers, queue, until_held, with_server, Outcome, HOUR};
use apalis_core::backend::codec::Codec;
use apalis_core::backend::finalize::Durable;
use apalis_core::backend::{
    BackendConfig, Expose, Filter, ListAllTasks, ListQueues, ListTasks, ListWorkers, Metrics, Statistic, TaskSink,
    WaitForCompletion, WireFormatBackend,
};
use apalis_core::task::attempt::Attempt;
use apalis_core::task::status::Status;
use apalis_core::worker::builder::WorkerBuilder;
use apalis_core::worker::context::WorkerContext;
use apalis_core::worker::service::task_fn_validator::check_fn_2;
use apalis_dq::DqStorage;
use serde_json::Value;

fn page(status: Option<Status>, page: u32) -> Filter {
    Filter { status, page, page_size: Some(2) }
}

fn value<'s>(statistics: &'s [Statistic], title: &str) -> &'s str {
    &statistics.iter().find(|statistic| statistic.title == title).unwrap().value
}

#[test]
fn queues_tasks_and_workers_are_listed() {
    with_server(|client| async move {
        let mut storage = numbers(&client).retain(HOUR);
        storage.push_bulk((0..5).collect()).await.unwrap();
        DqStorage::<u32>::new(client.clone(), "other").push(1).await.unwrap();
        queue(&client).pop().named("w").one().await.unwrap().unwrap();
        let done = queue(&client).pop().one().await.unwrap().unwrap();
        queue(&client).ack(&done).await.unwrap();

        let first = storage.list_tasks(&page(Some(Status::Queued), 1)).await.unwrap();
        let second = storage.list_tasks(&page(Some(Status::Queued), 2)).await.unwrap();
        let args: Vec<_> = [first, second].concat().into_iter().map(|task| task.args).collect();
        assert_eq!(args, [b"2", b"3", b"4"]);
        assert_eq!(storage.list_tasks(&page(Some(Status::Running), 1)).await.unwrap().len(), 1);
        assert_eq!(storage.list_tasks(&page(Some(Status::Done), 1)).await.unwrap().len(), 0, "its payload is gone");
        let values: DqStorage<Value> = DqStorage::new(client.clone(), "q");
        assert_eq!(values.list_tasks(&page(Some(Status::Done), 1)).await.unwrap()[0].args, b"null");
        let all = Filter { status: None, page: 1, page_size: Some(100) };
        assert_eq!(
            (values.list_tasks(&all).await.unwrap().len(), values.list_all_tasks(&all).await.unwrap().len()),
            (5, 6)
        );

        let workers = storage.list_workers().await.unwrap();
        assert_eq!((workers.len(), workers[0].id.as_str(), workers[0].queue.as_str()), (1, "w", "q"));
        assert_eq!(storage.list_all_workers().await.unwrap().len(), 1);
        let names: Vec<_> = storage.list_queues().await.unwrap().into_iter().map(|queue| queue.name).collect();
        assert_eq!(names, ["other", "q"]);
        let (here, everywhere) = (storage.fetch_by_queue().await.unwrap(), storage.global().await.unwrap());
        assert_eq!((value(&here, "PENDING_JOBS"), value(&everywhere, "PENDING_JOBS")), ("3", "4"));
        assert_eq!((value(&here, "RUNNING_JOBS"), value(&here, "DONE_JOBS")), ("1", "1"));
    });
}

#[test]
fn a_worker_is_listed_under_its_name_while_it_holds_a_task() {
    with_server(|client| async move {
        let mut storage = numbers(&client);
        storage.push(1).await.unwrap();
        let handler = |_: u32, worker: WorkerContext| async move {
            tokio::time::sleep(HOUR).await;
            drop(worker);
            Outcome::Ok(())
        };
        let running = tokio::spawn(WorkerBuilder::new("ann").backend(storage.clone()).build(handler).run());
        until_held(&queue(&client)).await;
        assert_eq!(storage.list_workers().await.unwrap()[0].id, "ann");
        running.abort();
    });
}

#[test]
fn the_backend_is_what_apalis_asks_for() {
    fn is_complete<B>(_: &B)
    where
        B: Expose<u32, Durable>
            + WaitForCompletion<u32>
            + BackendConfig<Args = u32>
            + WireFormatBackend<Compact = Vec<u8>>,
        B::Codec: Codec<u32, Compact = Vec<u8>>,
    {
    }
    async fn handler(_: u32, _: WorkerContext, _: Attempt) {}
    let client = dq_client::Client::open("redis://127.0.0.1").unwrap();
    is_complete(&numbers(&client));
    check_fn_2::<_, DqStorage<u32>, u32, WorkerContext, Attempt>(handler);
}
