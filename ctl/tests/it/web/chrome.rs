//! A headless Chromium that a test looks through: it opens the page, presses keys and takes pictures.
//!
//! It is driven by the DevTools protocol over two named pipes (`--remote-debugging-pipe`), so that nothing but the
//! browser is needed: messages of JSON, each with a null byte after it.

use crate::support::{eventually, patience};
use serde_json::{json, Value as Json};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

pub struct Browser {
    child: Child,
    to: File,
    from: BufReader<File>,
    session: String,
    next: u64,
    dir: PathBuf,
}

/// How wide and how high the page is, in CSS pixels.
#[derive(Clone, Copy)]
pub enum Screen {
    Desktop,
    Phone,
}

#[derive(Clone, Copy)]
pub enum Scheme {
    Light,
    Dark,
}

impl Browser {
    pub fn start() -> Browser {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("chrome-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&dir).unwrap();
        let pipes = [dir.join("to"), dir.join("from")];
        assert!(Command::new("mkfifo").args(&pipes).status().unwrap().success());
        let program = std::env::var("DQ_BROWSER").unwrap_or_else(|_| "chromium".to_owned());
        // The sandbox does not start as root, and the pages are our own.
        let child = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<to 4>from", "sh", &program, "--headless=new", "--no-sandbox", "--disable-gpu"])
            .args(["--remote-debugging-pipe", "--hide-scrollbars", "--force-color-profile=srgb"])
            .arg(format!("--user-data-dir={}", dir.join("profile").display()))
            .current_dir(&dir)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let to = OpenOptions::new().write(true).open(&pipes[0]).unwrap();
        let from = BufReader::new(File::open(&pipes[1]).unwrap());
        let mut browser = Browser { child, to, from, session: String::new(), next: 0, dir };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }))["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        browser.show(Screen::Desktop, Scheme::Light);
        browser
    }

    /// Sends a command and returns its result. Events that come meanwhile are dropped.
    fn call(&mut self, method: &str, params: Json) -> Json {
        self.next += 1;
        let mut message = json!({ "id": self.next, "method": method, "params": params });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.to
            .write_all(format!("{message}\0").as_bytes())
            .expect("a browser: install chromium, or name one in DQ_BROWSER");
        loop {
            let mut bytes = Vec::new();
            self.from.read_until(0, &mut bytes).unwrap();
            assert_eq!(bytes.pop(), Some(0), "the browser has ended: install chromium, or name one in DQ_BROWSER");
            let mut answer: Json = serde_json::from_slice(&bytes).unwrap();
            if answer["id"] == self.next {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].take();
            }
        }
    }

    pub fn show(&mut self, screen: Screen, scheme: Scheme) {
        let (width, height, mobile) = match screen {
            Screen::Desktop => (1280, 900, false),
            Screen::Phone => (390, 844, true),
        };
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile });
        self.call("Emulation.setDeviceMetricsOverride", size);
        let value = match scheme {
            Scheme::Light => "light",
            Scheme::Dark => "dark",
        };
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": value }] });
        self.call("Emulation.setEmulatedMedia", features);
    }

    /// Opens an address. One that differs only after its # does not load the page again.
    pub fn open(&mut self, url: &str) {
        self.call("Page.navigate", json!({ "url": url }));
    }

    /// The value of an expression of JavaScript in the page.
    #[track_caller]
    pub fn eval(&mut self, script: &str) -> Json {
        let params = json!({ "expression": script, "returnByValue": true, "awaitPromise": true });
        let mut result = self.call("Runtime.evaluate", params);
        assert!(result["exceptionDetails"].is_null(), "{script}: {result}");
        result["result"]["value"].take()
    }

    /// What a person reads.
    pub fn text(&mut self) -> String {
        self.eval("document.body?.innerText ?? ''").as_str().unwrap_or_default().to_owned()
    }

    /// Waits until the page shows a text.
    #[track_caller]
    pub fn until(&mut self, text: &str) {
        let end = Instant::now() + patience();
        while !self.text().contains(text) {
            assert!(Instant::now() < end, "no {text:?} in:\n{}", self.text());
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub fn until_true(&mut self, script: &str) {
        eventually(script, || self.eval(script) == true);
    }

    /// Presses a key that is no letter: `Tab`, `Enter`, `Escape`, `Backspace`, an arrow, or ` `.
    pub fn press(&mut self, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, None),
            "Enter" => (13, Some("\r")),
            "Escape" => (27, None),
            " " => (32, Some(" ")),
            "Backspace" => (8, None),
            "ArrowUp" => (38, None),
            "ArrowDown" => (40, None),
            other => panic!("no such key: {other}"),
        };
        for kind in ["keyDown", "keyUp"] {
            let mut params = json!({ "type": kind, "key": key, "windowsVirtualKeyCode": code });
            if let (Some(text), "keyDown") = (text, kind) {
                params["text"] = json!(text);
            }
            self.call("Input.dispatchKeyEvent", params);
        }
    }

    /// Types a text into what has the focus.
    pub fn write(&mut self, text: &str) {
        for letter in text.chars() {
            let key = letter.to_string();
            self.call("Input.dispatchKeyEvent", json!({ "type": "keyDown", "key": key, "text": key }));
            self.call("Input.dispatchKeyEvent", json!({ "type": "keyUp", "key": key }));
        }
    }

    /// Presses Tab until what has the focus shows this text, and says how often.
    #[track_caller]
    pub fn tab_to(&mut self, text: &str) -> usize {
        let focused = "(document.activeElement?.innerText || document.activeElement?.ariaLabel \
                       || document.activeElement?.id || '').trim().replace(/\\s+/g, ' ')";
        for pressed in 0..200 {
            if self.eval(focused).as_str().is_some_and(|found| found.starts_with(text)) {
                return pressed;
            }
            self.press("Tab");
        }
        panic!("Tab does not reach {text:?} in:\n{}", self.text());
    }

    /// Chooses with the keyboard what shows this text, and waits for what follows.
    #[track_caller]
    pub fn choose(&mut self, text: &str, follows: &str) {
        self.tab_to(text);
        self.press("Enter");
        self.until(follows);
    }

    /// Takes a picture of what is on the screen.
    pub fn picture(&mut self, path: &Path) {
        use base64::prelude::{Engine, BASE64_STANDARD};
        let taken = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        std::fs::write(path, BASE64_STANDARD.decode(taken["data"].as_str().unwrap()).unwrap()).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
