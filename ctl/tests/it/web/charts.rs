//! The charts of the page in a headless Chromium, `make test-web`.

use super::chrome::Browser;
use super::Web;
use crate::support::{eventually, Server};

/// The page of a queue with one message, as soon as it shows this.
fn of_queue(shown: &str) -> (Server, Web, Browser) {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "x"]);
    let web = Web::start(&server, &[]);
    let mut browser = Browser::start();
    browser.open(&web.page("queue?queue=q"));
    browser.until(shown);
    (server, web, browser)
}

/// Gives the page this history instead of that of the server. Each sample is how long it was ago in ms, the ready messages, the
/// total pushed, and how late messages were delivered.
fn give_history(browser: &mut Browser, samples: &str) {
    browser.eval(&format!(
        "const ask = window.fetch; window.fetch = async (path, options) => {{ \
         const answer = await (await ask(path, options)).json(); \
         const row = ([ago, ready, pushed, late]) => [answer.now - ago, ready, 0, 0, 0, pushed, 0, 0, late, null]; \
         if (answer.history) answer.history = [{samples}].map(row); \
         return new Response(JSON.stringify(answer)); }}"
    ));
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn lateness_and_run_time_are_drawn_after_the_second_sample() {
    let (server, _web, mut browser) = of_queue("A line appears with the second sample");
    let drawn = "[...document.querySelectorAll('.chart')].map((chart) => chart.querySelectorAll('path.line[d*=M]').length - chart.querySelectorAll('.swatch').length > 0).join()";
    assert_eq!(browser.eval(drawn), "false,false,false,false");
    let heights = "[...document.querySelectorAll('.chart')].map((chart) => chart.offsetHeight).join()";
    let empty = browser.eval(heights);
    // Deliveries go on, so that there are some between two samples.
    eventually("they are drawn", || {
        server.ask(&["DQ.PUSH", "q", "x"]);
        server.ask(&["EVAL", "local m = redis.call('DQ.POP', 'q') redis.call('DQ.ACK', 'q', m[1][4])", "0"]);
        browser.eval(drawn).as_str().unwrap().starts_with("true,true,true")
    });
    assert_eq!(browser.eval(heights), empty, "what is below does not move");
    // What was measured is known as a bound only.
    let legend = "document.querySelectorAll('.chart')[2].querySelector('.legend').innerText.replace(/\\s+/g, ' ')";
    let shown = browser.eval(legend).as_str().unwrap().to_owned();
    assert!(shown.starts_with("median ≤ ") && shown.contains("99 % ≤ "), "{shown}");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn an_interruption_draws_a_gap_and_no_spike() {
    let server = Server::start();
    let web = Web::start(&server, &[]);
    let mut browser = Browser::start();
    browser.open(&web.page(""));
    browser.until("There is no queue yet");
    // Instants and a total: ten a second, an interruption, a second one without a sample, and a total that began again.
    let samples = "[[0, 0], [1e4, 100], [2e4], [3e4, 100], [4e4, 200], [5e4, 5], [6e4, 105]]";
    let rates = format!("import('/chart.js').then(({{ rates }}) => rates({samples}, 1).map((one) => one[1]).join())");
    assert_eq!(browser.eval(&rates), "10,NaN,NaN,10,NaN,10");
    let drawn = format!(
        "import('/chart.js').then(({{ chart, rates }}) => {{ const one = chart('', String, ''); one.update([{{ name: 'In', kind: 'pushed', points: rates({samples}, 1) }}]); \
         return ['g path', '.break'].map((path) => one.node.querySelector(path).getAttribute('d').match(/M/g).length).join(); }})"
    );
    assert_eq!(browser.eval(&drawn), "3,3", "three parts of the line, and a mark for what is not known");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn labels_of_the_axes_are_exact_and_apart() {
    let (_server, _web, mut browser) = of_queue("clients waiting");
    // In 150 seconds, 0.4 messages a second were pushed, and delivered 3 ms late.
    give_history(&mut browser, "[150000, 1, 0, [3, 4]], [140000, 1, 4, [3, 4]], [75000, 1, 30, [3, 4]], [10000, 1, 56, [3, 4]], [0, 1, 60, [3, 4]]");
    browser.until_true("document.querySelectorAll('.drawing .blank').length === 1");
    let words = |nth: usize, of: &str| {
        format!("[...document.querySelectorAll('.chart')[{nth}].querySelectorAll('.{of} span')].map((label) => label.innerText).join()")
    };
    for (nth, scale) in [(0, "1,0.5"), (1, "0.5,0.25"), (2, "100 ms,10 ms,1 ms")] {
        assert_eq!(browser.eval(&words(nth, "scale")), scale);
    }
    assert_eq!(browser.eval(&words(0, "times")), "2.5 min ago,75 s,now");
    let wide = "[...document.querySelectorAll('.times span')].filter((label) => label.scrollWidth > label.clientWidth).map((label) => label.innerText).join()";
    assert_eq!(browser.eval(wide), "", "no label reaches into the next one");
    let over = "[...document.querySelectorAll('.chart')].filter((chart) => { const box = (node) => node.getBoundingClientRect(); \
         const [whole, lines] = [box(chart), box(chart.querySelector('svg[role=img]'))]; \
         return [...chart.querySelectorAll('.scale span')].some((label) => box(label).right > lines.left || box(label).left < whole.left); }).length";
    assert_eq!(browser.eval(over), 0, "no label covers a line, or is cut");
    // Nor do large numbers.
    let large = "document.querySelector('.scale span').innerText = '5,000,000'";
    browser.eval(large);
    assert_eq!(browser.eval(over), 0, "a large number has room");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_chart_tells_the_values_of_a_time_by_pointer_and_keyboard() {
    let (_server, _web, mut browser) = of_queue("clients waiting");
    // An hour ago there were 40 messages, then 20, and now there is one.
    give_history(
        &mut browser,
        "[3600000, 40, 0, null], [3590000, 40, 0, null], [1800000, 20, 0, null], [0, 1, 0, null]",
    );
    let chart = "document.querySelector('.chart')";
    browser.until_true(&format!("{chart}.innerText.includes('1 h ago')"));
    let shown = format!("{chart}.innerText.replace(/\\s+/g, ' ')");
    let now = browser.eval(&shown).as_str().unwrap().to_owned();
    assert!(now.contains("Ready 1 ") && now.contains("50 25") && now.contains("1 h ago 30 min now"), "{now}");
    // What stands alone is a dot.
    let dots = format!("{chart}.querySelector('.dot.ready').getAttribute('d').match(/M/g).length");
    assert_eq!(browser.eval(&dots), 2);
    let at = |part: f64| {
        format!("(() => {{ const slider = {chart}.querySelector('input'); const box = slider.getBoundingClientRect(); slider.dispatchEvent(new PointerEvent('pointermove', {{ pointerType: 'mouse', clientX: box.left + box.width * {part} }})); }})()")
    };
    browser.eval(&at(0.0));
    browser.until_true(&format!("{shown}.includes('Ready 40 ')"));
    browser.eval(&at(0.45));
    browser.until_true(&format!("{shown}.includes('Ready 20 ')"));
    assert_eq!(browser.eval(&format!("{chart}.querySelector('.cursor').hasAttribute('d')")), true);
    browser.eval(&format!(
        "{chart}.querySelector('input').dispatchEvent(new PointerEvent('pointerleave', {{ pointerType: 'mouse' }}))"
    ));
    browser.until_true(&format!("{shown}.includes('Ready 1 ')"));
    // The keyboard starts at the present.
    browser.tab_to("Messages: time");
    for _ in 0..100 {
        browser.press("ArrowDown");
    }
    browser.press("ArrowDown");
    browser
        .until_true(&format!("/^\\d\\d:\\d\\d:\\d\\d: Ready 20, /.test({chart}.querySelector('input').ariaValueText)"));
    browser.press("Tab");
    browser.until_true(&format!("{shown}.includes('Ready 1 ')"));
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn one_late_delivery_leaves_the_others_to_be_seen() {
    let (_server, _web, mut browser) = of_queue("clients waiting");
    // Most were 2 to 8 ms late, and one nine minutes.
    give_history(
        &mut browser,
        "[30000, 1, 0, [2, 8]], [20000, 1, 0, [4, 540000]], [10000, 1, 0, [8, 8]], [0, 1, 0, [2, 4]]",
    );
    let chart = "document.querySelectorAll('.chart')[2]";
    browser.until_true(&format!("{chart}.querySelector('g .line.ready')?.getAttribute('d') ? true : false"));
    let labels = format!("[...{chart}.querySelectorAll('.scale span')].map((label) => label.innerText).join()");
    assert_eq!(browser.eval(&labels), "10 min,1 s,1 ms");
    // Whatever the axis ends with, no label covers another one.
    let close = "import('/chart.js').then(({ logarithmic }) => [1, 101, 1001, 10001, 60001, 600001, 3600001].filter((highest) => { const { labels, place } = logarithmic(highest); return place(labels[1]) < .4 || place(labels[1]) > .6; }).length)";
    assert_eq!(browser.eval(close), 0);
    // A line is where its label is, and the median moves by more than the width of a line.
    let apart = format!(
        "(() => {{ const tops = [...{chart}.querySelectorAll('.scale span')].map((label) => label.getBoundingClientRect()); \
         const plot = {chart}.querySelector('svg[role=img]').getBoundingClientRect(); \
         const lines = [...{chart}.querySelector('.grid').getAttribute('d').matchAll(/M0 ([\\d.]+)H/g)].map((line) => Number(line[1])); \
         return Math.round(Math.abs(tops[1].top + 8 - plot.top - lines[2] / 64 * plot.height)); }})()"
    );
    assert!(browser.eval(&apart).as_i64().unwrap() <= 1);
    let heights = format!("(() => {{ const ys = [...{chart}.querySelector('g .line.ready').getAttribute('d').matchAll(/ ([\\d.]+)/g)].map((point) => Number(point[1])); return Math.max(...ys) - Math.min(...ys); }})()");
    let moves = browser.eval(&heights).as_f64().unwrap();
    assert!(moves > 5.0, "{moves}");
    assert_eq!(browser.problem(), "");
}
