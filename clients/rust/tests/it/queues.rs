//! Queues: each method does what its command does, in both protocols.

use crate::support::{eventually, in_both_protocols, Server};
use dq_client::blocking::{Client, Queue};
use dq_client::{
    cmd, Consumer, DeadFilter, Declared, Error, Forward, GroupInfo, GroupOrder, Info, Message, MessageId, MsgPack,
    Nack, Pushed, Raw, Reason, Resend, Settings, State, Stats,
};
use std::time::{Duration, SystemTime};

const HOUR: Duration = Duration::from_secs(3600);
const SECOND: Duration = Duration::from_secs(1);

#[derive(serde::Serialize, serde::Deserialize, PartialEq, Debug, Clone)]
struct Mail {
    to: String,
    urgent: bool,
}

fn mail(to: &str) -> Mail {
    Mail { to: to.to_owned(), urgent: false }
}

#[test]
fn a_typed_message_returns_as_it_was_pushed() {
    in_both_protocols(|client| {
        let mails: Queue<Mail> = client.queue("mail");
        let id = mails.push(&mail("ann")).send().unwrap().id().expect("a new message");
        let delivery = mails.pop().block(SECOND).one().unwrap().expect("a message");
        assert_eq!((&delivery.id, delivery.attempt, delivery.payload().unwrap()), (&id, 1, mail("ann")));
        assert!(mails.ack(&delivery).unwrap());
        assert!(!mails.ack(&delivery).unwrap());
        assert_eq!(mails.pop().one().unwrap().map(|delivery| delivery.id), None);

        mails.push(&mail("bob")).send().unwrap();
        let raw: Queue<Raw> = client.queue("mail");
        let seen = raw.peek(State::Ready, 1).unwrap().remove(0);
        assert_eq!(seen.bytes(), br#"{"to":"bob","urgent":false}"#);
        let packed: Queue<MsgPack<Mail>> = client.queue("packed");
        packed.push(&MsgPack(mail("cid"))).send().unwrap();
        assert_eq!(packed.peek(State::Ready, 1).unwrap()[0].payload().unwrap().0, mail("cid"));
        assert!(matches!(
            client.queue::<Mail>("packed").pop().one().unwrap().unwrap().payload(),
            Err(Error::Decode(_))
        ));
        let bytes: Vec<u8> = (0..=255).collect();
        let raw: Queue<Raw> = client.queue("raw");
        raw.push(&Raw(bytes.clone())).send().unwrap();
        assert_eq!(raw.pop().no_ack().one().unwrap().unwrap().payload().unwrap().0, bytes);
    });
}

#[test]
fn a_push_keeps_what_its_message_went_through() {
    in_both_protocols(|client| {
        let numbers: Queue<u8> = client.queue("q");
        numbers.push(&1).attempt(2).error("timeout").checkpoint("half").send().unwrap();
        let delivery = numbers.pop().meta().one().unwrap().expect("a message");
        let meta = delivery.meta.as_ref().unwrap();
        assert_eq!((delivery.attempt, meta.error.as_deref()), (3, Some("timeout")));
        assert_eq!(meta.checkpoint.as_deref(), Some(&b"half"[..]));
        numbers.push_all(&[2]).ids(["old"]).dead(Reason::Expired).send().unwrap();
        let dead = numbers.get("old").unwrap().unwrap();
        assert_eq!((dead.state, dead.reason.as_deref()), (State::Dead, Some("expired")));
    });
}

#[test]
fn acknowledging_and_popping_is_one_command() {
    in_both_protocols(|client| {
        let numbers: Queue<u8> = client.queue("q");
        numbers.push_all(&[1, 2, 3, 4]).send().unwrap();
        let none: [&[u8]; 0] = [];
        let (acked, first) = numbers.ackpop(none).count(2).send().unwrap();
        assert_eq!((acked, first.len()), (0, 2));
        let (acked, next) = numbers.ackpop(&first).lease(HOUR).count(9).send().unwrap();
        let payloads: Vec<u8> = next.iter().map(|delivery| delivery.payload().unwrap()).collect();
        assert_eq!((acked, &payloads[..]), (2, &[3, 4][..]));
        let (acked, last) = numbers.ackpop([&next[0], &first[0]]).block(Duration::from_millis(5)).send().unwrap();
        assert_eq!((acked, last.len(), numbers.len(None).unwrap()), (1, 0, 1));
    });
}

#[test]
fn every_option_of_a_push_arrives() {
    in_both_protocols(|client| {
        let mails: Queue<Mail> = client.queue("mail");
        let due = SystemTime::now() + HOUR;
        let push = mails.push(&mail("ann")).id("m-1").at(due).priority(-7).retries(3).lease(HOUR).ttl(2 * HOUR);
        assert_eq!(push.send().unwrap(), Pushed::New("m-1".into()));
        let message = mails.get("m-1").unwrap().expect("the message");
        assert_eq!((message.state, message.priority, message.retries), (State::Delayed, -7, 3));
        assert_eq!((message.lease, message.ttl, message.attempt), (HOUR, 2 * HOUR, 0));
        let early = due.duration_since(message.due).unwrap_or_default();
        assert!(early.is_zero(), "due {early:?} early");
        assert_eq!(message.payload().unwrap(), mail("ann"));
        assert_eq!(mails.push(&mail("bob")).id("m-1").send().unwrap(), Pushed::Duplicate);
        assert!(mails.push(&mail("bob")).id("m-1").delay(HOUR).replace().send().unwrap().id().is_some());
        assert!(mails.push(&mail("cid")).id("m-1").delay(HOUR).replace_within(HOUR).send().unwrap().id().is_some());
        assert_eq!(mails.get("m-1").unwrap().unwrap().payload().unwrap(), mail("cid"));
        let held = mails.push(&mail("e")).id("later").send().and_then(|_| mails.pop().one()).unwrap().unwrap();
        mails.push(&mail("f")).id("later").replace_later().send().unwrap();
        assert!(mails.pop().one().unwrap().is_none() && mails.ack(&held).unwrap());
        assert_eq!(mails.pop().no_ack().one().unwrap().unwrap().payload().unwrap(), mail("f"));
        let generated = mails.push(&mail("dan")).once().send().unwrap().id().unwrap();
        assert!(generated.as_str().unwrap().contains('-'), "{generated}");
        assert_eq!(mails.get("none").unwrap().map(|message| message.id), None);
    });
}

#[test]
fn batches_say_what_became_of_each_message() {
    in_both_protocols(|client| {
        let mails: Queue<Mail> = client.queue("mail");
        let three = [mail("ann"), mail("bob"), mail("cid")];
        assert_eq!(mails.push_all(&three).send().unwrap().len(), 3);
        mails.push(&mail("x")).id("live").send().unwrap();
        mails.push(&mail("x")).id("dead").send().unwrap();
        mails.bury("dead", Some("for the test")).unwrap();
        let results = mails.push_all(&three).ids(["live", "dead", "new"]).priority(5).send().unwrap();
        assert!(matches!(results[0], Ok(Pushed::Duplicate)), "{results:?}");
        assert!(matches!(results[1], Err(Error::DeadId(_))), "{results:?}");
        assert!(matches!(&results[2], Ok(Pushed::New(id)) if *id == "new"), "{results:?}");
        assert!(matches!(mails.push_all(&three).ids(["one"]).send(), Err(Error::Config(_))));
        assert_eq!(mails.push_all(&[]).send().unwrap().len(), 0);
        let all = mails.pop().count(10).lease(HOUR).all().unwrap();
        assert_eq!((all.len(), all[0].payload().unwrap()), (5, mail("cid")));
        assert_eq!(mails.ack_all(&all).unwrap(), 5);
        assert_eq!(mails.ack_all([""; 0]).unwrap(), 0);
    });
}

#[test]
fn a_message_can_be_moved_cancelled_and_revived() {
    in_both_protocols(|client| {
        let mails: Queue<Mail> = client.queue("mail");
        let state = |id: &str| mails.get(id).unwrap().map(|message| message.state);
        for id in ["a", "b", "c"] {
            mails.push(&mail(id)).id(id).delay(HOUR).send().unwrap();
        }
        assert!(mails.reschedule("a", Duration::ZERO).unwrap());
        assert!(mails.reschedule_at("b", SystemTime::now() + 2 * HOUR).unwrap());
        assert!(mails.set_priority("b", 9).unwrap() && !mails.reschedule("none", HOUR).unwrap());
        assert_eq!((state("a"), state("b")), (Some(State::Ready), Some(State::Delayed)));
        assert_eq!(mails.promote(Some(1)).unwrap() + mails.promote(None).unwrap(), 2);
        assert!(mails.cancel("c").unwrap() && !mails.cancel("c").unwrap());
        assert_eq!(mails.cancel_all(["c", "b"]).unwrap(), [false, true]);
        // An id that only DEDUPE still refuses is forgotten.
        let known: Queue<Mail> = client.queue("known");
        known.declare(&Settings { dedupe: Some(HOUR), ..Settings::default() }).unwrap();
        known.push(&mail("m")).id("m").send().unwrap();
        known.ack(known.pop().one().unwrap().unwrap()).unwrap();
        assert!(known.cancel("m").unwrap() && !known.cancel("m").unwrap());
        let delivery = mails.pop().one().unwrap().unwrap();
        assert!(mails.extend(&delivery, Some(HOUR)).unwrap().expect("a lease") > SystemTime::now());
        assert!(mails.extend(&delivery, None).unwrap().is_some());
        let ends = mails.extend_all([delivery.as_ref(), b"none"], Some(HOUR)).unwrap();
        assert!(ends[0].expect("a lease") > SystemTime::now() && ends[1..] == [None]);
        assert_eq!(mails.extend_all([""; 0], None).unwrap(), []);
        let nacked = mails.nack(&delivery, &Nack::retry().after(HOUR).error("no answer")).unwrap();
        assert_eq!(nacked, Some(State::Delayed));
        assert_eq!(mails.get("a").unwrap().unwrap().error.as_deref(), Some("no answer"));
        assert_eq!(mails.nack(&delivery, &Nack::retry()).unwrap(), None);
        assert_eq!(mails.extend(&delivery, None).unwrap(), None);
        mails.promote(None).unwrap();
        let delivery = mails.pop().one().unwrap().unwrap();
        assert_eq!(mails.nack(&delivery, &Nack::give_back()).unwrap(), Some(State::Ready));
        let delivery = mails.pop().one().unwrap().unwrap();
        assert_eq!(delivery.attempt, 2);
        assert_eq!(mails.nack(&delivery, &Nack::reject().error("never")).unwrap(), Some(State::Dead));
        let dead = mails.peek(State::Dead, 5).unwrap().remove(0);
        assert_eq!((dead.reason.as_deref(), dead.died.is_some()), (Some("rejected"), true));
        assert_eq!(mails.redrive(["a", "none"]).unwrap() + mails.redrive([""; 0]).unwrap(), 1);
        assert_eq!(mails.bury("a", None).unwrap(), Some(State::Ready));
        assert_eq!(
            mails.redrive_dead(&DeadFilter { count: Some(5), delay: HOUR, ..DeadFilter::default() }).unwrap(),
            1
        );
        assert_eq!((mails.len(None).unwrap(), mails.len(Some(State::Delayed)).unwrap()), (1, 1));
        assert_eq!(mails.purge(&[State::Dead], None).unwrap() + mails.purge(&[], Some(10)).unwrap(), 1);
    });
}

#[test]
fn settings_counts_and_statistics_are_read_back() {
    in_both_protocols(|client| {
        let mails: Queue<Mail> = client.queue("mail");
        assert!(mails.info().unwrap().is_none() && mails.stats().unwrap().is_none());
        assert!(matches!(mails.pause(None), Err(Error::NoQueue(_))));
        let settings = Settings {
            max_lease: Some(HOUR),
            lease: Some(HOUR),
            delay: Some(Duration::ZERO),
            retries: Some(-1),
            backoff: Some((SECOND, HOUR)),
            jitter: Some(20),
            ttl: Some(2 * HOUR),
            max_len: Some(3),
            max_inflight: Some(2),
            rate: Some((100, SECOND)),
            group_rate: Some((10, SECOND)),
            dead_len: Some(-1),
            dead_ttl: Some(HOUR),
            max_payload: Some(100),
            dedupe: Some(SECOND),
            retain: Some(HOUR),
            done_len: Some(7),
            group_inflight: Some(3),
            group_order: Some(GroupOrder::Turn),
            errors: Some(3),
            forward: Some(Forward::none()),
            dead_forward: Some(Forward::stream("dead").trim(100)),
        };
        mails.declare(&settings).unwrap();
        mails.create(&settings).unwrap();
        assert!(matches!(mails.create(&Settings::default()), Err(Error::Server(_))));
        assert!(matches!(client.queue::<Mail>("none").alter(&settings), Err(Error::NoQueue(_))));
        mails.alter(&Settings { retries: Some(4), ..Settings::default() }).unwrap();
        mails.push_all(&[mail("a"), mail("b")]).send().unwrap();
        mails.push(&mail("c")).delay(HOUR).send().unwrap();
        let popped = mails.pop().one().unwrap().unwrap();
        mails.pause(Some(HOUR)).unwrap();
        let info = mails.info().unwrap().unwrap();
        assert_eq!(info.settings, Settings { retries: Some(4), ..settings });
        assert_eq!((info.delayed, info.ready, info.inflight, info.dead, info.totals.pushed), (1, 1, 1, 0, 3));
        assert!(
            info.paused && info.paused_until.is_some() && info.next_due.is_some() && info.oldest_inflight.is_some()
        );
        assert_eq!((info.delayed, info.next_delivery, info.waiting_clients), (1, None, 0));
        assert_eq!(info.totals.iter().find(|(name, _)| *name == "delivered"), Some(("delivered", 1)));
        assert_eq!(
            (info.settings.forward, info.forward_error, info.totals.forwarded),
            (Some(Forward::none()), None, 0)
        );
        let stream = Forward::stream("dead").trim(100);
        assert_eq!((info.settings.dead_forward, info.dead_forward_error), (Some(stream), None));
        assert_eq!((info.dead_forward_failing_since, info.totals.dead_forwarded), (None, 0));
        client.call(cmd("SET").arg("text").arg("x"), Resend::Harmless).unwrap();
        let wrong: Queue<Mail> = client.queue("wrong");
        let forward = Some(Forward::list("text"));
        wrong.declare(&Settings { forward, ..Settings::default() }).unwrap();
        wrong.push(&mail("d")).send().unwrap();
        eventually("it cannot be forwarded", || wrong.info().unwrap().unwrap().forward_error.is_some());
        let info = wrong.info().unwrap().unwrap();
        assert!(info.settings.forward.is_some() && info.forward_failing_since.is_some());
        assert!(mails.pop().one().unwrap().is_none());
        mails.resume().unwrap();
        mails.ack(&popped).unwrap();
        let stats = mails.stats().unwrap().unwrap();
        assert_eq!((stats.lateness.count(), stats.runtime.count(), stats.pops_empty), (1, 1, 1));
        assert_eq!(stats.lateness.buckets.len(), 24);
        assert!(stats.lateness.quantile(0.5).is_some());
    });
}

#[test]
fn a_scan_returns_every_message_once() {
    in_both_protocols(|client| {
        let mails: Queue<Mail> = client.queue("mail");
        let many: Vec<Mail> = (0..1234).map(|number| mail(&number.to_string())).collect();
        mails.push_all(&many[..1000]).send().unwrap();
        mails.push_all(&many[1000..]).delay(HOUR).send().unwrap();
        mails.schedule("tick", &mail("tick")).every(HOUR).send().unwrap();
        let mut seen: Vec<String> = mails.scan().map(|message| message.unwrap().payload().unwrap().to).collect();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 1235);
        assert_eq!(mails.scan().state(State::Ready).count(), 1000);
        let places: Vec<_> = mails.scan().sequence().map(|message| message.unwrap().sequence.unwrap()).collect();
        assert_eq!(places.iter().collect::<std::collections::BTreeSet<_>>().len(), 1235, "each has a place of its own");
        assert_eq!(
            mails.scan().recurring().map(|message| message.unwrap().id.to_string()).collect::<Vec<_>>(),
            ["tick"]
        );
    });
}

#[test]
fn schedules_are_declared_at_every_start() {
    in_both_protocols(|client| {
        let mails: Queue<Mail> = client.queue("mail");
        let declare = |to: &str| mails.schedule("s", &mail(to)).every(HOUR).offset(SECOND).times(3).send().unwrap();
        assert_eq!(declare("a"), Declared::Created);
        assert_eq!(declare("a"), Declared::Unchanged);
        assert_eq!(declare("b"), Declared::Changed);
        let schedule = mails.get("s").unwrap().unwrap().schedule.expect("a schedule");
        assert_eq!(
            (schedule.every, schedule.offset, schedule.times_left, schedule.runs),
            (Some(HOUR), SECOND, Some(3), 0)
        );
        let until = SystemTime::now() + 1000 * HOUR;
        let cron = mails.schedule("c", &mail("c")).cron("30 18 * * mon-fri").zone("Europe/Berlin").until(until);
        assert_eq!(cron.retries(2).priority(1).lease(HOUR).ttl(HOUR).send().unwrap(), Declared::Created);
        let schedule = mails.get("c").unwrap().unwrap().schedule.expect("a schedule");
        assert_eq!(schedule.cron.as_deref(), Some("30 18 * * mon-fri"));
        assert_eq!(schedule.zone.as_deref(), Some("Europe/Berlin"));
        assert!(matches!(mails.schedule("n", &mail("n")).send(), Err(Error::Config(_))));
        assert!(matches!(mails.schedule("n", &mail("n")).cron("0 0 31 2 *").send(), Err(Error::Server(_))));
    });
}

#[test]
fn errors_of_the_server_are_told_apart() {
    let server = Server::start();
    let mails: Queue<Mail> = server.client().queue("mail");
    mails.declare(&Settings { max_len: Some(1), max_payload: Some(50), ..Settings::default() }).unwrap();
    mails.push(&mail("a")).id("a").send().unwrap();
    assert!(matches!(mails.push(&mail("b")).send(), Err(Error::QueueFull(_))));
    mails.bury("a", None).unwrap();
    assert!(matches!(mails.push(&mail("a")).id("a").send(), Err(Error::DeadId(_))));
    assert!(matches!(mails.push(&mail(&"x".repeat(100))).send(), Err(Error::TooLarge(_))));
    server.ask(&["SET", "text", "x"]);
    let wrong: Queue<Mail> = server.client().queue("text");
    assert!(matches!(wrong.push(&mail("a")).send(), Err(Error::WrongType(_))));
    server.ask(&["CONFIG", "SET", "maxmemory", "1"]);
    assert!(matches!(mails.push(&mail("b")).send(), Err(Error::OutOfMemory(_))));
    server.ask(&["CONFIG", "SET", "maxmemory", "0"]);
    server.ask(&["ACL", "SETUSER", "reader", "on", ">pw", "~mail", "+dq.len"]);
    let reader = Client::open(&format!("redis://reader:pw@127.0.0.1:{}", server.port())).unwrap();
    let mails: Queue<Mail> = reader.queue("mail");
    assert_eq!(mails.len(Some(State::Dead)).unwrap(), 1);
    assert!(matches!(mails.push(&mail("a")).send(), Err(Error::NoPermission(_))));
    assert!(matches!(reader.queue::<Mail>("other").len(None), Err(Error::NoPermission(_))));
    server.ask(&["ACL", "SETUSER", "default", "resetpass", ">secret"]);
    assert!(matches!(server.client().ping(), Err(Error::Authentication(_))));
    let wrong = Client::open(&format!("redis://:wrong@127.0.0.1:{}", server.port())).unwrap();
    assert!(matches!(wrong.ping(), Err(Error::Authentication(_))));
}

#[test]
fn a_pop_that_blocks_is_served_when_a_message_is_due() {
    let server = Server::start();
    let mails: Queue<Mail> = server.client().queue("mail");
    let waiting = mails.clone();
    // Longer than the client waits for replies.
    let popped = std::thread::spawn(move || waiting.pop().block(60 * SECOND).one().unwrap().unwrap().id);
    server.until_blocked(1);
    eventually("it waits longer than for other replies", || {
        let list = server.text(&["CLIENT", "LIST"]).to_lowercase();
        list.lines().any(|line| line.contains("cmd=dq.pop") && !line.contains(" idle=0 "))
    });
    mails.push(&mail("ann")).id("m").delay(Duration::from_millis(50)).send().unwrap();
    assert_eq!(popped.join().unwrap(), "m");
}

#[test]
fn replies_to_commands_of_the_program_have_types() {
    in_both_protocols(|client| {
        let mails: Queue<Mail> = client.queue("mail");
        mails.push(&mail("ann")).id("m").group("g").send().unwrap();
        mails.pop().named("worker").one().unwrap().unwrap();
        let commands = ["DQ.INFO", "DQ.STATS", "DQ.GROUPS", "DQ.CONSUMERS", "DQ.GET"].map(|name| {
            let mut command = cmd(name);
            command.arg(mails.name());
            match name {
                "DQ.GROUPS" | "DQ.CONSUMERS" => command.arg(0).clone(),
                "DQ.GET" => command.arg(MessageId::from("m")).clone(),
                _ => command,
            }
        });
        let [info, stats, groups, consumers, message] =
            <[_; 5]>::try_from(client.batch(&commands)).unwrap().map(Result::unwrap);
        let info = Info::try_from(info).unwrap();
        assert_eq!((info.inflight, info.consumers, info.totals.pushed), (1, 1, 1));
        assert_eq!(Stats::try_from(stats).unwrap().pops_empty, 0);
        assert_eq!(GroupInfo::try_from(only(groups)).unwrap().name, b"g");
        assert_eq!(Consumer::try_from(only(consumers)).unwrap().name, b"worker");
        let message = Message::<Mail>::try_from(message).unwrap();
        assert_eq!((message.state, message.payload().unwrap()), (State::Inflight, mail("ann")));
        assert!(matches!(Info::try_from(dq_client::Value::Int(7)), Err(Error::Protocol(_))));
        mails.purge(&[], None).unwrap();
    });
}

/// The one row of a page.
fn only(page: dq_client::Value) -> dq_client::Value {
    let (_, mut rows): (dq_client::Value, Vec<dq_client::Value>) = dq_client::from_redis_value(page).unwrap();
    rows.remove(0)
}
