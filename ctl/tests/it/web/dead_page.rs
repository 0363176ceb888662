//! Dead messages on the page in a headless Chromium, `make test-web`.

use super::chrome::Browser;
use super::pictures::shop;
use super::Web;
use crate::support::Server;

#[test]
#[ignore = "needs chromium: make test-web"]
fn dead_messages_of_a_cause_are_redriven_by_keyboard() {
    let server = Server::start();
    shop(&server);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page(""));
    browser.until("payments:capture");
    browser.choose("payments:capture", "Oldest ready message");
    browser.choose("Dead", "card declined: order #");
    browser.tab_to("11 card declined");
    browser.press(" ");
    browser.until("11 messages that these conditions select");
    browser.choose("Redrive all 11", "11 dead messages with the error");
    // No is an answer too.
    browser.press("Escape");
    browser.until_true("!document.getElementById('dialog').open");
    assert_eq!(server.text(&["DQ.LEN", "payments:capture", "dead"]), "17");
    assert_eq!(browser.tab_to("Redrive all 11"), 0, "the focus is back");
    browser.press("Enter");
    browser.until("11 dead messages with the error");
    browser.choose("Redrive", "Redriven: 11 messages.");
    assert_eq!(server.text(&["DQ.LEN", "payments:capture", "dead"]), "6");
    // A condition that cannot be understood must not select more.
    let disabled = "[...document.querySelectorAll('.bulk button')].every((button) => button.hidden || button.disabled)";
    browser.eval("document.getElementById('dead-older').focus()");
    browser.write("2x");
    browser.until("Dead for at least: a time with a unit");
    assert_eq!(browser.eval(disabled), true);
    browser.eval("const field = document.getElementById('dead-older'); field.value = ''; field.dispatchEvent(new Event('input'))");
    browser.until_true(&format!("!({disabled})"));
    // One of the others is selected and deleted.
    browser.eval("document.querySelector('.causes [aria-pressed=true]').click()");
    browser.until("6 messages");
    browser.tab_to("Select capture-1017");
    browser.press(" ");
    browser.eval("document.querySelector('.bulk .danger').click()");
    browser.until("Delete 1 message of payments:capture?");
    // What cannot be undone has its focus on the way back.
    assert_eq!(browser.eval("document.activeElement.innerText"), "Back");
    browser.choose("Delete", "Deleted: 1 message.");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn the_way_back_and_a_link_keep_conditions_of_the_dead() {
    let server = Server::start();
    shop(&server);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page("queue?queue=payments:capture&tab=dead"));
    browser.until("card declined: order #");
    browser.choose("6 timeout after", "6 messages that these conditions select");
    browser.eval("document.getElementById('dead-text').focus()");
    browser.write("-1005");
    browser.until("1 message that these conditions select");
    browser.eval("document.querySelector('.messages .line-one a').click()");
    browser.until("Edit and push again…");
    browser.eval("history.back()");
    browser.until("1 message that these conditions select");
    assert_eq!(browser.eval("document.getElementById('dead-text').value"), "-1005");
    let link = browser.eval("location.href");
    browser.open("about:blank");
    browser.open(link.as_str().unwrap());
    browser.until("1 message that these conditions select");
    // Each condition is in the question, whatever it does.
    browser.eval("document.getElementById('dead-attempts').focus()");
    browser.write("0");
    browser.until_true("location.hash.includes('attempts=0')");
    for verb in ["Delete", "Redrive"] {
        let click = format!("[...document.querySelectorAll('.bulk button')].find((one) => one.innerText.startsWith('{verb} it')).click()");
        browser.eval(&click);
        browser.until(&format!("{verb} 1 dead message of payments:capture?"));
        let question = browser.eval("document.getElementById('dialog').innerText");
        let question = question.as_str().unwrap();
        for words in ["with the error “timeout after", "” and with “-1005” in id", "and after at least 0 attempts"]
        {
            assert!(question.contains(words), "{words}: {question}");
        }
        browser.press("Escape");
        browser.until_true("!document.getElementById('dialog').open");
    }
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_queue_whose_messages_die_opens_at_its_dead() {
    let server = Server::start();
    for id in ["ready", "dead"] {
        server.ask(&["DQ.PUSH", "q", "x", "ID", id]);
    }
    server.ask(&["DQ.BURY", "q", "dead"]);
    server.ask(&["DQ.PUSH", "q", "x", "ID", "held", "RETRIES", "0", "PRIORITY", "9"]);
    server.ask(&["DQ.POP", "q", "LEASE", "1"]);
    let web = Web::start(&server, &[]);
    let mut browser = Browser::start();
    let shows = |tab: &str| format!("document.querySelector('.tabs [aria-current]')?.dataset.key === '{tab}'");
    browser.open(&web.page("queue?queue=q"));
    browser.until_true(&shows("dead"));
    browser.until("(lease expired)");
    browser.until("Retries used up, the last lease expired without an ack");
    browser.open(&web.page("queue?queue=q&tab=ready"));
    browser.until_true(&shows("ready"));
    // Also if the view is there already.
    browser.open(&web.page("queue?queue=q"));
    browser.until_true(&shows("dead"));
    browser.open(&web.page("queue?queue=q&tab=ready"));
    browser.until_true(&shows("ready"));
    browser.tab_to("Messages die");
    browser.press("Enter");
    browser.until_true(&shows("dead"));
    browser.open(&web.page(""));
    browser.until_true("document.querySelector('.chip a')?.innerText === 'messages die'");
    browser.eval("document.querySelector('.chip a').click()");
    browser.until_true(&shows("dead"));
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_dead_message_is_repaired_under_its_own_id_or_copied() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "{\"user\":7}", "ID", "m", "PRIORITY", "5", "HEADERS", "1", "trace", "1f"]);
    for attempt in ["one", "two"] {
        server.ask(&["DQ.ALTER", "q", "ERRORS", "5"]);
        server.ask(&["DQ.POP", "q"]);
        server.ask(&["DQ.NACK", "q", "m", "DELAY", "0", "ERROR", attempt, "CHECKPOINT", "{\"row\":70}"]);
    }
    server.ask(&["DQ.BURY", "q", "m", "ERROR", "three"]);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page("message?queue=q&id=m"));
    browser.until("Errors of past attempts");
    let shown = browser.text();
    for text in [
        "three",
        "Attempt 2",
        "two",
        "Attempt 1",
        "one",
        "trace",
        "1f",
        "\"row\": 70",
        "\"user\": 7",
        "Download",
        "Delete…",
    ] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    assert!(!shown.contains("Cancel…"), "{shown}");
    browser
        .until_true("document.querySelector('.condition').innerText.startsWith('Dead · Rejected or buried · died ')");
    browser.choose("Edit and push again…", "Edit m and push it again");
    // It is indented to be read, and what is edited is pushed as it stands there.
    let field = "document.getElementById('field-payload').value";
    assert_eq!(browser.eval(field), "{\n  \"user\": 7\n}");
    browser.eval(&format!("{field} = {field}.replace('7', '8')"));
    browser.eval("document.getElementById('field-id').value = 'm2'");
    browser.choose("Push", "leave it empty, because the new message has the id m.");
    browser.eval("document.getElementById('field-old').value = ''");
    browser.choose("Push", "Pushed: m2.");
    let copy = web.read("/api/message?queue=q&id=m2")["message"].clone();
    assert_eq!(
        (&copy["payload"], &copy["priority"], &copy["headers"]["trace"]),
        (&"{\n  \"user\": 8\n}".into(), &5.into(), &"1f".into())
    );
    assert_eq!(web.read("/api/message?queue=q&id=m")["message"]["state"], "dead");
    // Its own id is refused as long as it stays, in words of the page.
    browser.choose("Edit and push again…", "Edit m and push it again");
    browser.eval("document.getElementById('field-old').value = ''; document.getElementById('field-id').value = 'm'");
    browser.choose("Push", "redrive or delete it, or let the new one replace it");
    browser.press("Escape");
    // Unless somebody says otherwise it is replaced, and a payload that was not changed stays as it was.
    browser.choose("Edit and push again…", "is replaced, under its id");
    browser.eval("document.querySelector('dialog button.primary').click()");
    browser.until("Pushed: m, in place of the dead message.");
    browser.until("Ready · due");
    let repaired = web.read("/api/message?queue=q&id=m")["message"].clone();
    assert_eq!((&repaired["payload"], &repaired["attempt"]), (&"{\"user\":7}".into(), &0.into()));
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_dead_message_that_lives_again_is_not_replaced() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "old", "ID", "m"]);
    server.ask(&["DQ.BURY", "q", "m"]);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page("message?queue=q&id=m"));
    browser.choose("Edit and push again…", "is replaced, under its id");
    server.ask(&["DQ.REDRIVE", "q", "IDS", "1", "m"]);
    browser.eval("document.getElementById('field-payload').value = 'new'");
    browser.choose("Push", "m is ready now: somebody has changed it meanwhile.");
    assert_eq!(web.read("/api/message?queue=q&id=m")["message"]["payload"], "old");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_traceback_begins_with_the_line_that_says_most() {
    let server = Server::start();
    for (id, error) in [("a", "Traceback (most recent call last):\n  File\nKeyError: 'a'\n"), ("b", "one\r\ntwo")] {
        server.ask(&["DQ.PUSH", "q", "x", "ID", id]);
        server.ask(&["DQ.BURY", "q", id, "ERROR", error]);
    }
    let web = Web::start(&server, &[]);
    let mut browser = Browser::start();
    browser.open(&web.page("queue?queue=q&tab=dead"));
    browser.until("Buried: KeyError: 'a' ↵ Traceback (most recent call last): ↵ File");
    browser.until("Buried: one ↵ two");
    // One cause is shown too: it is that of all.
    server.ask(&["DQ.CANCEL", "q", "b"]);
    browser.until_true(
        "[...document.querySelectorAll('.causes .cause')].map((one) => one.innerText).join().startsWith('KeyError')",
    );
    browser.until_true("document.querySelectorAll('.causes li').length === 1");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_question_about_dead_messages_names_the_command_that_keeps_them() {
    let server = Server::start();
    for queue in ["mail", "a b"] {
        server.ask(&["DQ.PUSH", queue, "x", "ID", "m"]);
        server.ask(&["DQ.BURY", queue, "m", "ERROR", "no such user"]);
    }
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    let copied = "document.querySelector('dialog code')?.innerText";
    for (queue, command) in
        [("mail", "dqctl dump mail --state dead > dead.jsonl"), ("a b", "dqctl dump 'a b' --state dead > dead.jsonl")]
    {
        browser.open(&web.page(&format!("queue?queue={}&tab=dead", queue.replace(' ', "+"))));
        browser.until_true(&format!("document.querySelector('h1')?.innerText === '{queue}'"));
        browser.until("no such user");
        for action in ["Delete it…", "Redrive it…", "Redrive…", "Purge…"] {
            browser.eval(&format!(
                "[...document.querySelectorAll('button')].find((one) => one.innerText === '{action}').click()"
            ));
            browser.until("with their errors, first:");
            assert_eq!(browser.eval(copied), command, "{action}");
            browser.press("Escape");
            browser.until_true("!document.getElementById('dialog').open");
        }
    }
    assert_eq!(browser.problem(), "");
}
