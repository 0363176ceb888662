//! Connections: every kind of server, and what happens when a connection is lost.

use crate::support::{eventually, Cluster, Server, Tls};
use dq_client::blocking::{Client, Queue, Worker};
use dq_client::{cmd, ConnectionError, ConnectionErrorKind, Context, Error, Event, Options, Pushed, Resend, Settings};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

fn push_and_pop(client: &Client, name: &str) {
    let queue: Queue<String> = client.queue(name);
    queue.push(&"hello".to_owned()).send().unwrap();
    let delivery = queue.pop().one().unwrap().expect("a message");
    assert_eq!(delivery.payload().unwrap(), "hello");
    assert!(queue.ack(&delivery).unwrap());
}

#[test]
fn unix_sockets_users_and_databases_are_in_the_url() {
    let server = Server::with(&["--unixsocket", "DIR/sock"]);
    server.ask(&["ACL", "SETUSER", "al@ice", "on", ">s:cret", "~*", "+@all"]);
    let path = server.dir().join("sock");
    let client = Client::open(&format!("unix://{}?db=3&user=al%40ice&pass=s%3Acret", path.display())).unwrap();
    push_and_pop(&client, "q");
    assert_eq!(client.call(cmd("EXISTS").arg("q"), Resend::Harmless).unwrap(), dq_client::Value::Int(1));
    assert_eq!(server.text(&["EXISTS", "q"]), "0");
    push_and_pop(&Client::open(&format!("valkey://al%40ice:s%3Acret@localhost:{}/7", server.port())).unwrap(), "q");
    let named = Client::with(Options::from_url(&server.url()).unwrap().name("billing")).unwrap();
    push_and_pop(&named, "q");
    assert!(server.text(&["CLIENT", "LIST"]).contains("name=billing"));
}

#[test]
fn a_server_without_hello_is_spoken_to_in_resp2() {
    for hidden in [&["HELLO"][..], &["HELLO", "CLIENT", "ROLE"]] {
        let names: Vec<&str> = hidden.iter().flat_map(|name| ["--rename-command", *name, ""]).collect();
        let server = Server::with(&names);
        server.ask(&["ACL", "SETUSER", "worker", "on", ">secret", "~*", "&*", "+@all"]);
        let port = server.port();
        let refused = Client::open(&format!("redis://worker:wrong@127.0.0.1:{port}")).unwrap().ping().unwrap_err();
        assert!(matches!(refused, Error::Authentication(_)), "{refused:?}");
        for protocol in ["", "?protocol=2"] {
            let client = Options::from_url(&format!("redis://worker:secret@127.0.0.1:{port}/1{protocol}")).unwrap();
            let client = Client::with(client.name("a name")).unwrap();
            push_and_pop(&client, "q");
            let worker = Worker::new(client.clone())
                .on_event(|event| assert!(matches!(event, Event::Started { .. } | Event::Stopped { .. }), "{event}"));
            let running = worker.queue("work", 1, |_: u8, _: Context| Ok(())).start().unwrap();
            let queue: Queue<u8> = client.queue("work");
            queue.push(&1).send().unwrap();
            eventually("it is acknowledged", || queue.len(None).unwrap() == 0);
            if hidden.len() == 1 {
                let list = client.call(cmd("CLIENT").arg("LIST"), Resend::Harmless).unwrap();
                assert!(format!("{list:?}").contains(":a?name"), "{list:?}");
            }
            running.stop();
            assert_eq!(running.join().abandoned, 0);
        }
    }
}

#[test]
fn a_database_that_does_not_exist_is_refused() {
    let server = Server::start();
    let error = Client::open(&format!("{}/99", server.url())).unwrap().ping().unwrap_err();
    assert!(matches!(error, Error::Config(_)) && error.to_string().contains("no database 99"), "{error:?}");
}

#[test]
fn tls_checks_the_certificate_of_the_server() {
    let tls = Tls::start();
    let (certificate, key, ca) = (tls.file("server.pem"), tls.file("server.key"), tls.file("ca.pem"));
    let url = tls.url();
    let root = || std::fs::read(&ca).unwrap();
    let identity = || (std::fs::read(&certificate).unwrap(), std::fs::read(&key).unwrap());
    let options = |url: &str| Options::from_url(url).unwrap().retry_for(Duration::ZERO);
    let known = options(&url).root_certificate(root()).client_certificate(identity().0, identity().1);
    push_and_pop(&Client::with(known).unwrap(), "q");
    let named = options(&format!("{url}?cacert={ca}&cert={certificate}&key={key}"));
    push_and_pop(&Client::with(named).unwrap(), "q");
    let insecure = options(&format!("{url}#insecure")).client_certificate(identity().0, identity().1);
    push_and_pop(&Client::with(insecure).unwrap(), "q");
}

#[test]
fn the_other_scheme_is_named_if_only_one_side_speaks_tls() {
    let (plain, tls) = (Server::start(), Tls::start());
    // A server without TLS may wait for the rest of what it takes for a command.
    let without_tls: &[_] = &[ConnectionErrorKind::NoTls, ConnectionErrorKind::TlsTimedOut];
    for (url, text, kinds) in [
        (plain.url().replace("redis:", "rediss:"), "redis://", without_tls),
        (tls.url().replace("rediss:", "redis:"), "rediss://", &[ConnectionErrorKind::MayExpectTls]),
    ] {
        let options =
            Options::from_url(&url).unwrap().retry_for(Duration::ZERO).connect_timeout(Duration::from_secs(2));
        let error = Client::with(options).unwrap().ping().unwrap_err();
        let Error::Connect(error) = error else { panic!("{url}: {error:?}") };
        assert!(kinds.contains(&error.kind()), "{url}: {error:?}");
        assert!(error.to_string().contains("TLS") && error.to_string().contains(text), "{url}: {error}");
    }
}

#[test]
fn a_certificate_that_is_not_accepted_is_named_in_words() {
    let tls = Tls::start();
    let (certificate, key, ca) = (tls.file("server.pem"), tls.file("server.key"), tls.file("ca.pem"));
    let refused = |url: &str| {
        let client = Client::with(Options::from_url(url).unwrap().retry_for(Duration::ZERO)).unwrap();
        let error = client.ping().unwrap_err();
        assert!(matches!(error, Error::Certificate(_)) && !error.is_transient(), "{url}: {error:?}");
        error.to_string()
    };
    let (url, own) = (tls.url(), format!("cert={certificate}&key={key}"));
    for (options, text) in [
        (format!("?{own}"), "an authority that is not trusted"),
        (format!("?cacert={ca}"), "the server asks for a certificate of the client"),
        (format!("?cacert={ca}&cert={}&key={}", tls.file("other.pem"), tls.file("other.key")), "(UnknownCA)"),
        (format!("?cacert={}&{own}", tls.file("other.pem")), "an authority that is not trusted"),
    ] {
        let error = refused(&format!("{url}{options}"));
        assert!(error.contains(text), "{options}: {error}");
    }
    let elsewhere = refused(&format!("{}?cacert={ca}&{own}", url.replace("localhost", "127.0.0.1")));
    assert!(elsewhere.contains("is not for 127.0.0.1, but for localhost"), "{elsewhere}");
    for wrong in [
        format!("{url}?cacert={key}"),
        format!("{url}?cacert=nothing.pem"),
        format!("{url}?cert={certificate}"),
        "redis://localhost?cacert=".to_owned() + &ca,
    ] {
        let error = Options::from_url(&wrong).and_then(Client::with).unwrap_err();
        assert!(matches!(error, Error::Config(_)), "{wrong}: {error:?}");
    }
}

#[test]
fn a_server_without_the_module_is_named_as_such() {
    let server = Server::without_module();
    let queue: Queue<String> = server.client().queue("q");
    assert!(matches!(queue.info(), Err(Error::NoModule(_))));
    // The server repeats the payload, which is no text, in its answer.
    let error = queue.push(&"x".to_owned()).send().unwrap_err();
    assert!(error.to_string().contains("the module dq") && !error.is_transient(), "{error:?}");
    let server = Server::start();
    let queue: Queue<String> = server.client().queue("q");
    server.ask(&["ACL", "SETUSER", "default", "-dq.push"]);
    assert!(matches!(queue.push(&"x".to_owned()).send(), Err(Error::NoPermission(_))));
    let error = server.try_ask(&["DQ.NOTHING"]).unwrap_err();
    assert!(matches!(error, Error::NoModule(_)), "{error}");
}

#[test]
fn a_client_finds_the_keys_of_a_cluster() {
    let cluster = Cluster::of(3);
    let client = cluster.client();
    (0..20).for_each(|number| push_and_pop(&client, &format!("q{number}")));
    assert_eq!(client.servers().unwrap().len(), 3);
    client.ping().unwrap();
    // A pop of several queues goes to the server of its first queue, not to that of the number before it.
    for tag in ["{a}", "{b}", "{c}", "{d}"] {
        let queue: Queue<String> = client.queue(format!("{tag}2"));
        queue.push(&"hello".to_owned()).send().unwrap();
        let pop =
            client.call(cmd("DQ.MPOP").arg(2).arg(format!("{tag}1")).arg(format!("{tag}2")), Resend::Never).unwrap();
        assert!(matches!(&pop, dq_client::Value::Array(items) if items.len() == 2), "{pop:?}");
    }
    // The slot of a queue moves while the client knows its old place.
    let slot = cluster.slot_of("q0");
    let owner = Cluster::first_owner(3, slot);
    let queue: Queue<String> = client.queue("q0");
    queue.push(&"stays".to_owned()).id("m").send().unwrap();
    cluster.reshard(slot, owner, (owner + 1) % 3);
    let lengths = ["q0", "q1", "q0", "q2"].map(|name| cmd("DQ.LEN").arg(name).clone());
    let lengths: Vec<_> = client.batch(&lengths).into_iter().map(Result::unwrap).collect();
    assert_eq!(lengths, [1, 0, 1, 0].map(dq_client::Value::Int));
    assert_eq!(queue.pop().one().unwrap().unwrap().payload().unwrap(), "stays");
    assert!(matches!(Client::open("redis+cluster://127.0.0.1:1/2"), Err(Error::Config(_))));
}

#[test]
fn a_worker_whose_client_knows_an_old_place_finds_its_queue() {
    let cluster = Cluster::of(2);
    let client = cluster.client();
    let queue: Queue<String> = client.queue("q");
    queue.push(&"hello".to_owned()).send().unwrap();
    let slot = cluster.slot_of("q");
    let owner = Cluster::first_owner(2, slot);
    cluster.reshard(slot, owner, 1 - owner);
    let handled = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&handled);
    let handler = move |_: String, _: Context| {
        counted.fetch_add(1, Ordering::SeqCst);
        Ok::<(), dq_client::Failure>(())
    };
    let running = Worker::new(client).queue("q", 1, handler).start().unwrap();
    eventually("it is handled", || handled.load(Ordering::SeqCst) == 1);
    running.stop();
    running.join();
}

#[test]
fn a_client_follows_the_sentinels_to_a_new_master() {
    let mut master = Server::start();
    let port = master.port().to_string();
    let replica = Server::with(&["--replicaof", "127.0.0.1", &port]);
    eventually("the replica follows", || replica.info("replication", "master_link_status") == "up");
    let sentinel = Server::sentinel(&format!(
        "sentinel monitor jobs 127.0.0.1 {port} 1\nsentinel down-after-milliseconds jobs 1000\n\
         sentinel failover-timeout jobs 5000\n"
    ));
    eventually("the sentinel knows the replica", || {
        let replicas = sentinel.ask(&["SENTINEL", "REPLICAS", "jobs"]);
        format!("{replicas:?}").contains(&replica.port().to_string())
    });
    let url = format!("redis+sentinel://127.0.0.1:1,127.0.0.1:{}/jobs/2", sentinel.port());
    let client = Client::with(Options::from_url(&url).unwrap().retry_for(Duration::from_secs(60))).unwrap();
    push_and_pop(&client, "q");
    assert_eq!(client.servers().unwrap()[0].to_string(), format!("127.0.0.1:{port}"));
    master.kill();
    push_and_pop(&client, "q");
    assert_eq!(client.servers().unwrap()[0].to_string(), format!("127.0.0.1:{}", replica.port()));
    let unknown = url.replace("/jobs", "/none");
    let unknown = Client::with(Options::from_url(&unknown).unwrap().retry_for(Duration::ZERO)).unwrap();
    assert!(matches!(unknown.ping(), Err(Error::Unavailable(_))));
}

#[test]
fn a_push_goes_on_when_the_server_returns() {
    let mut server = Server::with(&["--appendonly", "yes", "--appendfsync", "no"]);
    let options = Options::from_url(&server.url()).unwrap();
    let patient: Queue<String> = Client::with(options.clone().retry_for(Duration::from_secs(60))).unwrap().queue("q");
    let hasty: Queue<String> = Client::with(options.retry_for(Duration::ZERO)).unwrap().queue("q");
    patient.push(&"one".to_owned()).send().unwrap();
    server.kill();
    assert!(matches!(hasty.push(&"x".to_owned()).send(), Err(Error::Connect(_))));
    let pusher = patient.clone();
    let push = std::thread::spawn(move || pusher.push(&"two".to_owned()).send());
    server.boot();
    assert!(push.join().unwrap().unwrap().id().is_some());
    assert_eq!(patient.len(None).unwrap(), 2);
}

/// A proxy that passes commands on, and closes the connection instead of passing on the reply to the first `lose`
/// commands that contain `word`.
fn forgetful_proxy(server: u16, word: &'static str, lose: usize) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let lost = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&lost);
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (client, counter) = (client.unwrap(), Arc::clone(&counter));
            std::thread::spawn(move || pass_on(client, server, word, lose, &counter));
        }
    });
    (port, lost)
}

fn pass_on(mut client: TcpStream, server: u16, word: &str, lose: usize, lost: &AtomicUsize) {
    let mut server = TcpStream::connect(("127.0.0.1", server)).unwrap();
    let mut buffer = [0; 65536];
    while let Ok(length @ 1..) = client.read(&mut buffer) {
        let command = String::from_utf8_lossy(&buffer[..length]).into_owned();
        server.write_all(&buffer[..length]).unwrap();
        let Ok(length) = server.read(&mut buffer) else { return };
        if command.contains(word) && lost.load(Ordering::SeqCst) < lose {
            lost.fetch_add(1, Ordering::SeqCst);
            return;
        }
        if client.write_all(&buffer[..length]).is_err() {
            return;
        }
    }
}

#[test]
fn a_push_whose_reply_is_lost_is_made_once() {
    let server = Server::start();
    let (port, lost) = forgetful_proxy(server.port(), "DQ.PUSH", 2);
    let client = Client::open(&format!("redis://127.0.0.1:{port}")).unwrap();
    let queue: Queue<String> = client.queue("q");
    let text = "hello".to_owned();
    let id = queue.push(&text).send().unwrap().id().expect("it counts as made");
    assert_eq!((lost.load(Ordering::SeqCst), queue.len(None).unwrap()), (2, 1));
    assert!(queue.get(&id).unwrap().is_some());
    assert_eq!(queue.push(&text).id(&id).send().unwrap(), Pushed::Duplicate);
}

#[test]
fn a_push_whose_message_died_meanwhile_counts_as_made() {
    let server = Server::start();
    let (port, lost) = forgetful_proxy(server.port(), "DQ.PUSH", 1);
    let client = Client::open(&format!("redis://127.0.0.1:{port}")).unwrap();
    let queue: Queue<String> = client.queue("q");
    // Dead as soon as it is pushed.
    let dying: Queue<String> = server.client().queue("q");
    dying.declare(&Settings { ttl: Some(Duration::from_millis(1)), ..Settings::default() }).unwrap();
    assert_eq!(queue.push(&"hello".to_owned()).id("m").send().unwrap(), Pushed::New("m".into()));
    assert_eq!(lost.load(Ordering::SeqCst), 1);
    assert!(matches!(queue.push(&"hello".to_owned()).id("m").send(), Err(Error::DeadId(_))));
}

#[test]
fn commands_of_a_batch_are_executed_in_their_order() {
    let server = Server::start();
    let numbers = |key: &str| -> Vec<_> { (0..5_000).map(|n| cmd("RPUSH").arg(key).arg(n).clone()).collect() };
    assert!(server.client().batch(&numbers("l")).iter().all(Result::is_ok));
    let expected = (0..5_000).map(|n| n.to_string().into_bytes()).map(dq_client::Value::BulkString).collect();
    assert!(server.ask(&["LRANGE", "l", "0", "-1"]) == dq_client::Value::Array(expected));
}

#[test]
fn a_batch_whose_reply_is_lost_is_made_once() {
    let server = Server::start();
    let (port, lost) = forgetful_proxy(server.port(), "DQ.MPUSH", 1);
    let queue: Queue<u32> = Client::open(&format!("redis://127.0.0.1:{port}")).unwrap().queue("q");
    let results = queue.push_all(&[1, 2, 3]).send().unwrap();
    assert!(results.iter().all(|result| matches!(result, Ok(Pushed::New(_)))), "{results:?}");
    assert_eq!((lost.load(Ordering::SeqCst), queue.len(None).unwrap()), (1, 3));
}

#[test]
fn a_connection_that_was_closed_while_idle_loses_no_command() {
    // The shortest limit that a server can have.
    let server = Server::with(&["--timeout", "1"]);
    server.ask(&["ACL", "SETUSER", "reader", "on", ">secret", "~*", "+dq.push", "+info", "+multi", "+exec"]);
    let url = format!("redis://reader:secret@127.0.0.1:{}", server.port());
    let client = Client::with(Options::from_url(&url).unwrap().retry_for(Duration::ZERO)).unwrap();
    let address = client.servers().unwrap().remove(0);
    let pushes = [cmd("DQ.PUSH").arg("q").arg("x").clone()];
    let send = |way: &str| match way {
        "call_on" => client.call_on(&address, cmd("INFO").arg("server")),
        "batch" => client.batch(&pushes).remove(0),
        "transaction" => client.transaction(&pushes)?.remove(0),
        _ => client.call(&pushes[0], Resend::Never),
    };
    for way in ["call_on", "batch", "transaction", "call"] {
        send(way).unwrap();
        eventually("the server closes the idle connection", || {
            !server.text(&["CLIENT", "LIST"]).contains("user=reader")
        });
        send(way).unwrap_or_else(|error| panic!("{way}: {error}"));
    }
}

#[test]
fn a_server_that_turns_a_client_away_is_quoted() {
    let server = Server::start();
    server.ask(&["CONFIG", "SET", "maxclients", "1"]);
    let taken = server.client();
    taken.ping().unwrap();
    let error = Options::from_url(&server.url()).unwrap().retry_for(Duration::ZERO);
    let error = Client::with(error).unwrap().ping().unwrap_err();
    assert!(
        matches!(&error, Error::Connect(error) if error.kind() == ConnectionErrorKind::TooManyClients)
            && error.to_string().ends_with(": ERR max number of clients reached"),
        "{error:?}"
    );
}

#[test]
fn a_connection_that_is_not_made_has_a_kind_of_error() {
    let (hanging, free) = (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let [hanging_at, free_at] = [&hanging, &free].map(|listener| listener.local_addr().unwrap());
    drop(free);
    for (url, kind, server) in [
        (format!("redis://{free_at}"), ConnectionErrorKind::Refused, free_at.to_string()),
        ("unix:///nothing".to_owned(), ConnectionErrorKind::Refused, "/nothing".to_owned()),
        ("redis://h.invalid".to_owned(), ConnectionErrorKind::UnknownHost, "h.invalid:6379".to_owned()),
        (format!("redis://{hanging_at}"), ConnectionErrorKind::NoReply, hanging_at.to_string()),
        (format!("rediss://{hanging_at}"), ConnectionErrorKind::TlsTimedOut, hanging_at.to_string()),
    ] {
        let options = Options::from_url(&url).unwrap().retry_for(Duration::ZERO);
        // A lookup that is refused takes less.
        let options = options.connect_timeout(Duration::from_secs(if url.contains("127") { 1 } else { 60 }));
        let error = Client::with(options).unwrap().ping().unwrap_err();
        let is_expected = |error: &ConnectionError| error.kind() == kind && error.server() == server;
        assert!(matches!(&error, Error::Connect(error) if is_expected(error)), "{url}: {error:?}");
    }
}

#[test]
fn what_must_not_happen_twice_is_not_sent_again() {
    let server = Server::start();
    let (port, lost) = forgetful_proxy(server.port(), "DQ.P", 10);
    let queue: Queue<u32> = Client::open(&format!("redis://127.0.0.1:{port}")).unwrap().queue("q");
    for error in [queue.push(&1).once().send().unwrap_err(), queue.pop().one().unwrap_err()] {
        assert!(error.may_have_been_executed(), "{error}");
    }
    assert!(queue.push(&1).id("m").replace().send().unwrap_err().may_have_been_executed());
    assert_eq!(lost.load(Ordering::SeqCst), 3);
}
