//! A service that sends mails later, and shows its queue with `apalis-board` at <http://127.0.0.1:3000>.
//!
//! ```text
//! cargo run --example axum
//! curl -X POST -H 'Content-Type: application/json' -d '{"to":"ann@example.org","text":"Hello"}' 127.0.0.1:3000/mails
//! ```
//!
//! `DQ_URL` names the server, by default `redis://127.0.0.1:6379`, and `LISTEN` the address of the service. A mail is
//! sent after ten seconds.

use apalis::prelude::*;
use apalis_board::axum::framework::{ApiBuilder, RegisterRoute};
use apalis_board::axum::sse::TracingBroadcaster;
use apalis_board::axum::ui::ServeUI;
use apalis_dq::{DqStorage, DueAt};
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Extension, Json, Router};
use std::time::{Duration, SystemTime};

const DELAY: Duration = Duration::from_secs(10);

#[derive(serde::Serialize, serde::Deserialize)]
struct Mail {
    to: String,
    text: String,
}

/// Accepts a mail, to be sent later.
async fn accept(
    State(mut mails): State<DqStorage<Mail>>,
    Json(mail): Json<Mail>,
) -> Result<StatusCode, (StatusCode, String)> {
    let task = TaskBuilder::new(mail).data(DueAt(SystemTime::now() + DELAY)).build();
    let pushed = mails.push_task(task).await;
    pushed.map(|()| StatusCode::ACCEPTED).map_err(|error| (StatusCode::SERVICE_UNAVAILABLE, error.to_string()))
}

async fn send(mail: Mail) -> Result<(), BoxDynError> {
    if !mail.to.contains('@') {
        return Err(AbortError::new("no address").into());
    }
    println!("to {}: {}", mail.to, mail.text);
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), BoxDynError> {
    let or = |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let client = dq_client::Client::open(&or("DQ_URL", "redis://127.0.0.1:6379"))?;
    let mails: DqStorage<Mail> = DqStorage::new(client.clone(), "mail").retain(Duration::from_secs(3600));
    // Done mails have no arguments, so the board reads any value.
    let shown: DqStorage<serde_json::Value> = DqStorage::new(client, "mail");
    let board = ApiBuilder::new(Router::new()).register("mail", shown).build();
    // The board counts as unhealthy without a stream of events, even if nothing is sent to it.
    let board = board.layer(Extension(TracingBroadcaster::create()));
    let app = Router::new()
        .route("/mails", post(accept))
        .with_state(mails.clone())
        .nest("/api/v1", board)
        .fallback_service(ServeUI::new());
    let listener = tokio::net::TcpListener::bind(or("LISTEN", "127.0.0.1:3000")).await?;
    let worker = WorkerBuilder::new("mailer").backend(mails).concurrency(64).build(send);
    tokio::select! {
        served = axum::serve(listener, app) => served?,
        worked = worker.run_until(dq_client::shutdown_signal()) => worked?,
    }
    Ok(())
}
