//! Cron expressions in time zones.

use crate::support::{eventually, in_both_protocols, Client, Clock, Reply, Server};

/// `DQ.SCHEDULE` with a cron expression, which has spaces.
fn declare(c: &mut Client, id: &str, expression: &str, zone: &str) -> Reply {
    c.cmd(&["DQ.SCHEDULE", "q", id, "x", "CRON", expression, "TZ", zone])
}

#[test]
fn a_cron_expression_is_due_at_its_time_of_day() {
    in_both_protocols(|c| {
        assert_eq!(declare(c, "s", "30 2 * * *", "asia/kolkata"), Reply::bulk("created"));
        let message = c.get("q", "s");
        let due = message.int("due");
        // 02:30 in India is 21:00 UTC.
        assert_eq!(due % 86_400_000, 21 * 3_600_000);
        assert!(due > c.now() && due <= c.now() + 86_400_000);
        assert_eq!((message.text("cron").as_str(), message.text("tz").as_str()), ("30 2 * * *", "Asia/Kolkata"));
        assert!(!message.has("every"));
        assert_eq!(declare(c, "s", "30 2 * * *", "Asia/Kolkata"), Reply::bulk("unchanged"));
        assert_eq!(c.ask("DQ.SCHEDULE q utc x CRON @hourly"), Reply::bulk("created"));
        assert_eq!(c.get("q", "utc").text("tz"), "UTC");
        assert_eq!(c.get("q", "utc").int("due") % 3_600_000, 0);
    });
}

#[test]
fn an_expression_that_is_none_or_never_fires_is_refused() {
    in_both_protocols(|c| {
        for (expression, error) in [
            ("0 0 31 2 *", "ERR CRON never fires"),
            ("0 22-2 * * *", "ERR CRON has an invalid hour: a field is * or a list"),
            ("0 0 * * * *", "ERR CRON must be five fields"),
            (&"0 ".repeat(65), "ERR CRON must be at most 128 bytes"),
        ] {
            let reply = declare(c, "s", expression, "UTC");
            assert!(reply.error().starts_with(error), "{expression}: {reply:?}");
        }
        assert_eq!(c.ask("EXISTS q"), Reply::Int(0));
    });
}

#[test]
fn a_run_waits_for_the_next_time_of_its_expression() {
    let clock = Clock::new();
    let server = Server::with_clock(&clock, &[]);
    let mut c = server.client();
    declare(&mut c, "s", "0 3 * * *", "Europe/Berlin");
    let mut due = c.get("q", "s").int("due");
    for day in 1..=3 {
        clock.set(day * 86_400_000);
        // Some servers read the time of day only from time to time.
        eventually("the next day", || c.pop_ids("q") == ["s"]);
        assert_eq!(c.ack("q s"), 1);
        let next = c.get("q", "s").int("due");
        // A day, except for clock changes.
        assert!((23 * 3_600_000..=25 * 3_600_000).contains(&(next - due)), "{due} then {next}");
        assert!(c.pop("q").is_empty());
        due = next;
    }
    assert_eq!(c.get("q", "s").int("runs"), 3);
}

#[test]
fn the_version_of_the_time_zones_is_shown() {
    let server = Server::start();
    let version = server.client().info("dq", "dq_tzdata");
    assert!(version.starts_with("20") && version.len() == 5, "{version}");
}

#[test]
fn a_cron_schedule_is_the_same_after_a_reload_and_on_a_replica() {
    let master = Server::start();
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut r) = (master.client(), replica.client());
    declare(&mut c, "s", "*/5 9-17 * * mon-fri", "America/New_York");
    let (digest, shown) = (c.digest("q"), c.get("q", "s"));
    c.ask("DEBUG RELOAD").ok();
    assert_eq!((c.digest("q"), c.get("q", "s")), (digest, shown));
    eventually("the replica is the same", || r.digest("q") == c.digest("q"));
}

#[test]
fn blanks_around_an_expression_do_not_matter() {
    let server = Server::start();
    let mut c = server.client();
    for (nth, expression) in ["0 9 * * *\n", "\t0 9 * * * ", "@daily\r\n", " @daily"].iter().enumerate() {
        assert_eq!(declare(&mut c, &nth.to_string(), expression, "UTC"), Reply::bulk("created"), "{expression:?}");
    }
}
