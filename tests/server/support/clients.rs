//! Client libraries of other languages: found on this machine, or installed into `target/`.
//!
//! Tests of libraries that cannot be installed are skipped with a line in the output.

use super::place::test_dir;
use super::wait::within;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;
use std::time::Duration;

/// Reports a test that is skipped. It bypasses the test harness, which hides the output of tests that pass.
pub fn left_out(what: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "NOT TESTED: {what}: {why}");
}

/// A Python with redis-py: that of the machine, or a virtual environment.
///
/// Returns `None` if `DQ_WITHOUT_PYTHON` is set.
pub fn python() -> Option<&'static Path> {
    static PYTHON: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = PYTHON.get_or_init(|| {
        if std::env::var_os("DQ_WITHOUT_PYTHON").is_some() {
            left_out("redis-py", "DQ_WITHOUT_PYTHON is set");
            return None;
        }
        Some(python_with_redis().unwrap_or_else(|problem| {
            panic!("redis-py cannot be had: {problem}\nDQ_WITHOUT_PYTHON=1 leaves it out");
        }))
    });
    found.as_deref()
}

fn python_with_redis() -> Result<PathBuf, String> {
    let has_redis =
        |python: &Path| run(Command::new(python).args(["-c", "import redis; assert redis.VERSION >= (6, 0)"]));
    let own = PathBuf::from("python3");
    if has_redis(&own).is_ok() {
        return Ok(own);
    }
    let venv = folder("python");
    let python = venv.join("bin/python");
    if has_redis(&python).is_err() {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv))?;
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "redis>=6"]))?;
    }
    Ok(python)
}

/// A Python with RQ and Celery, in a virtual environment.
///
/// Returns `None` if `DQ_WITHOUT_PYTHON` is set.
pub fn workers() -> Option<&'static Path> {
    static WORKERS: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = WORKERS.get_or_init(|| {
        if std::env::var_os("DQ_WITHOUT_PYTHON").is_some() {
            left_out("RQ and Celery", "DQ_WITHOUT_PYTHON is set");
            return None;
        }
        Some(python_with_workers().unwrap_or_else(|problem| {
            panic!("RQ and Celery cannot be had: {problem}\nDQ_WITHOUT_PYTHON=1 leaves them out");
        }))
    });
    found.as_deref()
}

fn python_with_workers() -> Result<PathBuf, String> {
    let venv = folder("workers");
    let python = venv.join("bin/python");
    if run(Command::new(&python).args(["-c", "import rq, celery, redis"])).is_err() {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv))?;
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "rq>=2", "celery[redis]>=5.4"];
        run(Command::new(&python).args(install))?;
    }
    Ok(python)
}

/// A folder in which Node scripts find node-redis and ioredis. Returns `None` without Node 20 or npm.
pub fn node() -> Option<&'static Path> {
    static NODE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = NODE.get_or_init(|| {
        let installed = node_modules();
        installed.map_err(|problem| left_out("node-redis and ioredis", &problem)).ok()
    });
    found.as_deref()
}

fn node_modules() -> Result<PathBuf, String> {
    let folder = folder("node");
    let is_new = "process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)";
    run(Command::new("node").args(["-e", is_new])).map_err(|_| "there is no Node 20 or newer".to_owned())?;
    let has = "require.resolve('redis'); require.resolve('ioredis')";
    if run(Command::new("node").args(["-e", has]).current_dir(&folder)).is_err() {
        std::fs::write(folder.join("package.json"), r#"{"private": true}"#).expect("written");
        let install = ["install", "--no-audit", "--no-fund", "--loglevel=error", "redis@6", "ioredis@6"];
        run(Command::new("npm").args(install).current_dir(&folder))?;
    }
    Ok(folder)
}

/// A PHP with phpredis and Predis. Returns `None` if one of the three is not installed: nothing installs them.
pub fn php() -> Option<&'static Path> {
    static PHP: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = PHP.get_or_init(|| {
        let has = "exit((int) !(extension_loaded('redis') && @include 'Predis/Autoloader.php'));";
        let has = run(Command::new("php").args(["-r", has]));
        has.map(|_| PathBuf::from("php"))
            .map_err(|_| left_out("phpredis and Predis", "PHP is not installed with both"))
            .ok()
    });
    found.as_deref()
}

/// A folder in `target/` that remains after the run.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// How long a program may run, and packages may take to be installed.
const LIMIT: Duration = Duration::from_secs(300);

/// Runs a program to its end. The error contains the command and its output.
pub fn run(command: &mut Command) -> Result<String, String> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let name = format!("program-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    // In files, because a process that it leaves behind would keep pipes open.
    let files = ["out", "err"].map(|what| test_dir().join(format!("{name}.{what}")));
    let [out, err] = files.each_ref().map(|file| File::create(file).expect("a file for the output"));
    let ended = command.stdin(Stdio::null()).stdout(out).stderr(err).spawn().and_then(end_of);
    let [out, err] = files.map(|file| {
        let said = std::fs::read(&file).expect("its output");
        let _ = std::fs::remove_file(&file);
        String::from_utf8_lossy(&said).into_owned()
    });
    match ended {
        Ok(Some(status)) if status.success() => Ok(out),
        Ok(Some(status)) => Err(format!("{command:?}: {status}\n{out}{err}")),
        Ok(None) => Err(format!("{command:?} did not end within {} s\n{out}{err}", LIMIT.as_secs())),
        Err(error) => Err(format!("{command:?}: {error}")),
    }
}

/// Waits for the end of a program. `None`: it was killed, because it ran for too long.
fn end_of(mut child: Child) -> std::io::Result<Option<ExitStatus>> {
    let mut ended = None;
    within(LIMIT, || {
        ended = child.try_wait().transpose();
        ended.is_some()
    });
    if ended.is_none() {
        child.kill()?;
        child.wait()?;
    }
    ended.transpose()
}
