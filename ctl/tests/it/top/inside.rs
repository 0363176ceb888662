//! What is inside a queue: its letters, and what is found in it.

use super::{Top, DOWN, ENTER, ESCAPE, TAB};
use crate::dqctl::ok;
use crate::support::{eventually, Server};

#[test]
fn letters_are_counted_by_the_cause_of_their_death() {
    let server = Server::start();
    ok(&server, &["create", "orders", "--deadforward", "QUEUE letters"]);
    for (id, error) in [("a", "timeout after 12ms"), ("b", "timeout after 99ms"), ("c", "no such user")] {
        ok(&server, &["push", "orders", "x", "--id", id, "--in", "1h"]);
        ok(&server, &["bury", "orders", id, "--error", error]);
    }
    let mut top = Top::start(&server);
    eventually("they have arrived", || top.line("letters ").split_whitespace().nth(1) == Some("3"));
    top.press("/letters\r");
    top.until("1 with");
    top.press(ENTER);
    top.until_line("a ");
    top.until("e causes");
    top.press("e");
    top.until("why they died in other queues");
    top.until("timeout after #ms");
    top.press(ENTER);
    eventually("only those", || !top.line("a ").is_empty() && !top.line("b ").is_empty() && top.line("c ").is_empty());
    // The queue in which they died says where they are.
    top.press(ESCAPE);
    top.until_line("c ");
    top.press(ESCAPE);
    top.until("1 with");
    top.press("/orders\r");
    top.until_line("orders ");
    top.press(ENTER);
    top.until("There are no ready messages");
    top.press(&format!("{TAB}{TAB}"));
    top.until("There are no dead messages: DEADFORWARD moves them to the queue letters.");
}

#[test]
fn letters_show_in_which_queue_they_died() {
    let server = Server::start();
    for (queue, ids) in [("invoices", &["a"][..]), ("orders", &["b", "c"])] {
        ok(&server, &["create", queue, "--deadforward", "QUEUE letters"]);
        for id in ids {
            ok(&server, &["push", queue, "x", "--id", id]);
            ok(&server, &["bury", queue, id, "--error", "no such user"]);
        }
    }
    let mut top = Top::start(&server);
    eventually("they have arrived", || top.line("letters ").split_whitespace().nth(1) == Some("3"));
    top.press("/letters\r");
    top.until("1 with");
    top.press(ENTER);
    top.until_line("a ");
    // Each column has its heading, and is no wider than its cells need.
    top.until("ATTEMPT DIED IN  PAYLOAD");
    assert!(top.line("ID ").ends_with("  ERROR"), "{}", top.text());
    assert!(top.line("b ").contains(" orders   x ") && top.line("b ").ends_with("  no such user"), "{}", top.text());
    assert!(top.line("a ").contains(" invoices ") && top.line("b ").contains(" orders "), "{}", top.text());
    top.press(ENTER);
    top.until("a  of letters  died in invoices");
    top.press(ESCAPE);
    top.until_line("b ");
    top.press("ar");
    top.until("Send 3 marked messages of letters back to where they died (orders 2, invoices");
    top.press("n");
    top.press("e");
    top.until("orders 2, invoices 1 no such user");
    top.press("r");
    top.until("Send 3 messages of letters with no such user back to where they died (orders 2,");
    top.press("n");
}

#[test]
fn letters_are_sent_back_one_by_one_and_by_cause() {
    let server = Server::start();
    ok(&server, &["create", "orders", "--deadforward", "QUEUE letters"]);
    for (id, error) in [("a", "timeout after 12ms"), ("b", "timeout after 99ms"), ("c", "no such user")] {
        ok(&server, &["push", "orders", "x", "--id", id]);
        ok(&server, &["bury", "orders", id, "--error", error]);
    }
    let mut top = Top::start(&server);
    eventually("they have arrived", || top.line("letters ").split_whitespace().nth(1) == Some("3"));
    top.press("/letters\r");
    top.until("1 with");
    top.press(ENTER);
    top.until_line("a ");
    top.until("r send back");
    top.press("r");
    top.until("Send a of letters back to where it died (orders)?");
    top.press("y");
    top.until("sent back 1 message of letters");
    assert_eq!(server.text(&["DQ.LEN", "orders", "ready"]), "1");
    top.press("e");
    top.until("timeout after #ms");
    top.press("r");
    top.until("back to where they died (orders)?");
    top.press("y");
    top.until("sent back 1 message of letters");
    eventually("both are back", || server.text(&["DQ.LEN", "orders", "ready"]) == "2");
    assert_eq!(server.text(&["DQ.LEN", "letters"]), "1");
}

#[test]
fn the_messages_of_a_queue_are_filtered() {
    let server = Server::start();
    for (id, payload, error) in
        [("a", "{\"mail\":\"Bob\"}", "timeout"), ("b", "x", "no such user"), ("bobs", "x", "refused")]
    {
        ok(&server, &["push", "q", payload, "--id", id, "--in", "1h"]);
        ok(&server, &["bury", "q", id, "--error", error]);
    }
    let mut top = Top::start(&server);
    eventually("they are dead", || top.line("q ").split_whitespace().nth(4) == Some("3"));
    top.press(ENTER);
    top.until_line("b ");
    top.press("/bob");
    top.until("2 with \"bob\" of 3 read");
    assert!(!top.line("a ").is_empty() && !top.line("bobs ").is_empty() && top.line("b ").is_empty(), "{}", top.text());
    top.press(&format!("\x7f\x7f\x7fSUCH{ENTER}"));
    top.until("1 with \"SUCH\" of 3 read");
    // Keys are about what is shown.
    top.press("X");
    top.until("this key is for all, and only some are shown");
    top.press("r");
    top.until("Redrive b of q?");
    top.press("y");
    top.until("redriven b");
    top.until("None of those that were read has this in its id, error or payload.");
    top.press(ESCAPE);
    top.until_line("bobs ");
}

#[test]
fn a_message_is_found_by_its_id() {
    let server = Server::start();
    ok(&server, &["create", "orders", "--deadforward", "QUEUE letters"]);
    ok(&server, &["push", "mail", "x", "--id", "other"]);
    ok(&server, &["push", "orders", "what is wanted", "--id", "order-7"]);
    let mut top = Top::start(&server);
    top.until_line("orders ");
    top.press(&format!("forder-7{ENTER}"));
    top.until("what is wanted");
    top.until("order-7  of orders");
    // It dies, and is followed to where it is now.
    ok(&server, &["bury", "orders", "order-7"]);
    top.until("The message no longer exists");
    top.press(&format!("forder-7#123{ENTER}"));
    top.until("order-7  of letters");
    top.press(&format!("fnone{ENTER}"));
    top.until("no queue has a message none, nor one whose id begins with that");
    ok(&server, &["push", "mail", "x", "--id", "order-7"]);
    top.press(&format!("forder-7{ENTER}"));
    top.until("2 messages have the id order-7");
    top.until_line("letters order-7 ");
    top.until_line("mail    order-7 ");
}

#[test]
fn messages_are_found_by_the_beginning_of_their_ids() {
    let server = Server::start();
    for (queue, id) in [("mail", "order-71"), ("orders", "order-72"), ("orders", "other")] {
        ok(&server, &["push", queue, "x", "--id", id]);
    }
    let mut top = Top::start(&server);
    top.until_line("orders ");
    top.press(&format!("forder-7{ENTER}"));
    top.until("2 messages have ids that begin with order-7");
    top.until_line("mail   order-71 ready");
    top.press("p");
    top.until("open the message first, with Enter");
    top.press(DOWN);
    top.press(ENTER);
    top.until("order-72  of orders");
    top.press(ESCAPE);
    top.until_line("mail   order-71 ready");
    top.press(ESCAPE);
    top.until("STATE↓");
    top.press(&format!("foth*{ENTER}"));
    top.until("other  of orders");
}

#[test]
fn the_details_of_a_queue_are_those_of_info_and_stats() {
    let server = Server::start();
    ok(&server, &["create", "q", "--lease", "90s"]);
    server.ask(&["DQ.PUSH", "q", "x"]);
    server.ask(&["DQ.POP", "q", "NOACK"]);
    let mut top = Top::with(&server, (80, 40), "");
    top.until_line("q ");
    top.press(ENTER);
    top.until("There are no ready messages");
    top.press("i");
    top.until("q  settings, totals and percentiles");
    eventually("settings", || top.line("lease ").ends_with(" 1m30s") && top.line("maxlen ").ends_with(" no limit"));
    top.press("\x1b[F");
    eventually("totals", || top.line("delivered ").ends_with(" 1"));
    eventually("percentiles", || top.line("lateness-p99").contains('≤') && top.line("runtime-p50").ends_with('-'));
    top.press(ESCAPE);
    top.until("There are no ready messages");
}

#[test]
fn marked_messages_are_redriven_and_deleted_together() {
    let server = Server::start();
    for id in ["a", "b", "c", "d"] {
        ok(&server, &["push", "q", "x", "--id", id, "--in", "1h"]);
        ok(&server, &["bury", "q", id]);
    }
    let states = || server.text(&["DQ.LEN", "q", "dead"]) + &server.text(&["DQ.LEN", "q", "ready"]);
    let mut top = Top::start(&server);
    eventually("they are dead", || top.line("q ").split_whitespace().nth(4) == Some("4"));
    top.press(ENTER);
    top.until_line("b ");
    top.press("  ");
    top.until("2 marked");
    top.press("r");
    top.until("Redrive 2 marked messages of q?");
    top.press("y");
    top.until("redriven 2 messages of q");
    assert_eq!(states(), "22");
    top.until_gone("2 marked");
    top.press("g  ");
    top.until("2 marked");
    top.press(ESCAPE);
    top.until_gone("2 marked");
    top.press("g  ");
    top.until("2 marked");
    top.press("c");
    top.until("Delete 2 marked messages of q for good?");
    top.press("y");
    top.until("deleted 2 messages of q");
    assert_eq!(states(), "02");
}

#[test]
fn a_message_in_flight_is_nacked_and_buried() {
    let server = Server::start();
    ok(&server, &["create", "q", "--backoff", "1h,1h"]);
    for id in ["a", "b"] {
        server.ask(&["DQ.PUSH", "q", "x", "ID", id]);
        server.ask(&["DQ.POP", "q", "AS", "encoder-7", "LEASE", "3600000"]);
    }
    let state = |id: &str| ok(&server, &["get", "q", id, "--json"]);
    let mut top = Top::start(&server);
    eventually("they are in flight", || top.line("q ").split_whitespace().nth(3) == Some("2"));
    top.press(ENTER);
    top.until_line("b ");
    top.press("t");
    top.until("Nack a of q, although encoder-7 works on it?");
    top.press("y");
    top.until("nacked a");
    assert!(state("a").contains("\"delayed\""));
    eventually("the other one is there", || top.line("a ").is_empty() && !top.line("b ").is_empty());
    top.press("b");
    top.until("Bury b of q, although encoder-7 works on it?");
    top.press("y");
    top.until("buried b");
    assert!(state("b").contains("\"dead\""));
}

#[test]
fn messages_that_wait_are_buried_one_by_one_and_marked() {
    let server = Server::start();
    for id in ["a", "b", "c", "d"] {
        ok(&server, &["push", "q", "x", "--id", id]);
    }
    let mut top = Top::start(&server);
    eventually("they are ready", || top.line("q ").split_whitespace().nth(1) == Some("4"));
    top.press(ENTER);
    top.until_line("d ");
    top.press("b");
    top.until("Bury a of q? It is dead until redriven.");
    top.press("y");
    top.until("buried 1 message of q");
    eventually("the list is read again", || top.line("a ").is_empty());
    top.press("  b");
    top.until("Bury 2 marked messages of q?");
    top.press("y");
    top.until("buried 2 messages of q");
    assert_eq!(
        (server.text(&["DQ.LEN", "q", "dead"]), server.text(&["DQ.LEN", "q", "ready"])),
        ("3".into(), "1".into())
    );
    eventually("only one is left", || top.line("b ").is_empty() && !top.line("d ").is_empty());
    top.press(&format!("{TAB}{TAB}"));
    top.until("DIED");
    top.until_line("a ");
    top.press("b");
    top.until("it has ended: only a message that can still be delivered is buried");
}

#[test]
fn a_queue_is_paused_for_a_time() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "q"]);
    let mut top = Top::start(&server);
    top.until_line("q ");
    top.press("P");
    top.until("Pause q for: ");
    top.press(&format!("soon{ENTER}"));
    top.until("a time is a number with a unit");
    top.press(&format!("\x7f\x7f\x7f\x7f15m{ENTER}"));
    top.until("Pause q for 15m? Nothing is delivered meanwhile.");
    top.press("y");
    top.until("paused q for 15m");
    let info = ok(&server, &["info", "q"]);
    assert!(info.contains("paused\t1") && !info.contains("paused-until\t\n"), "{info}");
}

#[test]
fn a_queue_whose_dead_are_moved_away_says_that_they_die_and_leads_to_them() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "q", "DEADFORWARD", "QUEUE", "q:dead"]);
    let mut top = Top::start(&server);
    eventually("it was looked at", || top.line("q ").ends_with("open"));
    for id in ["a", "b"] {
        server.ask(&["DQ.PUSH", "q", "x", "ID", id]);
        server.ask(&["DQ.BURY", "q", id, "ERROR", "card declined"]);
    }
    eventually("it is said in the list", || top.line("q ").ends_with("messages die"));
    top.press(ENTER);
    eventually("and in the head", || {
        let head = top.line("q ");
        head.contains("messages die: 2 in ") && head.ends_with("moved to q:dead")
    });
    top.press("\t\t");
    top.until("There are no dead messages: DEADFORWARD moves them to the queue q:dead.");
    top.press("e");
    top.until("There are no dead messages. DEADFORWARD moves them to the queue q:dead: 2 so");
    top.until("Enter open");
    top.press(ENTER);
    top.until_line("q:dead  why they died in other queues");
    top.until("card declined");
}

#[test]
fn why_messages_die_is_seen_without_opening_the_queue() {
    let server = Server::start();
    for (number, error) in ["550 no such user u1", "550 no such user u2", "timeout"].iter().enumerate() {
        let id = number.to_string();
        ok(&server, &["push", "mail", "x", "--id", &id]);
        ok(&server, &["bury", "mail", &id, "--error", error]);
    }
    let told = "mail  messages die: 3 in 10m: 550 no such user u# (2 of them)";
    let mut top = Top::start(&server);
    top.until_line(told);
    top.press(ENTER);
    eventually("it is said in the queue, too", || top.text().starts_with(told));
    let wide = Top::with(&server, (120, 24), "");
    wide.until("messages die (550 no such user u#)");
}
