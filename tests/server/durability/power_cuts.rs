//! Power cuts: what no fsync has written to the disk is gone, the names of files as well.

use super::cut_aof::{boot_and_rewrite, digest, lasting_command};
use crate::checker::{new_seed, soak_seconds};
use crate::support::{any_call, eventually, Client, Disk, Random, Server};
use std::time::{Duration, Instant};

/// The power cuts of an ordinary run of each kind.
const CUTS: usize = 4;

/// How many commands lie between two power cuts at most.
const COMMANDS: usize = 60;

/// Sends any commands to other queues and reads no reply, so that the power is cut while the server writes.
fn make_noise(server: &Server, random: &mut Random) -> Client {
    let mut noise = server.client();
    for _ in 0..random.below(200) {
        noise.send(any_call(random, &["noise", "more"]));
    }
    noise
}

/// Commands, rewrites of the AOF and power cuts, with an fsync before each reply.
fn cut_with_fsync_always(seed: u64, cuts: usize) {
    let (mut disk, mut random) = (Disk::new(), Random::seeded(seed));
    let args = ["--appendonly", "yes", "--appendfsync", "always", "--aof-use-rdb-preamble"];
    let preamble = *random.one_of(&["yes", "no"]);
    let mut server = Server::on_disk(&disk, &[&args[..], &[preamble]].concat());
    for cut in 0..cuts {
        let mut c = server.client();
        let rewrites = random.below(COMMANDS);
        let commands = 1 + random.below(COMMANDS);
        for nth in 0..commands {
            if nth == rewrites {
                c.ask("BGREWRITEAOF");
            }
            c.ask(lasting_command(&mut random));
        }
        let known = ["q", "r"].map(|key| c.digest(key));
        let _noise = make_noise(&server, &mut random);
        disk.cut(&mut server, &mut random);
        boot_and_rewrite(&mut server);
        let mut c = server.client();
        assert_eq!(["q", "r"].map(|key| c.digest(key)), known, "seed {seed}, power cut {cut}");
    }
}

/// Pushes, rewrites of the AOF and power cuts, with an fsync every second. What was on the disk at some time stays, and
/// of what followed only the end is lost.
fn cut_with_fsync_each_second(seed: u64, cuts: usize) {
    let (mut disk, mut random) = (Disk::new(), Random::seeded(seed));
    let mut server = Server::on_disk(&disk, &["--appendonly", "yes", "--appendfsync", "everysec"]);
    let mut pushed = 0;
    for cut in 0..cuts {
        let mut c = server.client();
        let push = |c: &mut Client, to: usize| {
            c.pipeline((pushed..to).map(|nth| format!("DQ.PUSH q x ID m{nth}")));
            to
        };
        let safe = push(&mut c, pushed + 1 + random.below(COMMANDS));
        if random.below(2) == 0 {
            c.ask("BGREWRITEAOF").text();
        }
        eventually("everything is on the disk", || disk.has_aof(&server));
        pushed = safe;
        let all = pushed + random.below(COMMANDS);
        c.pipeline((pushed..all).map(|nth| format!("DQ.PUSH q x ID m{nth}")));
        disk.cut(&mut server, &mut random);
        boot_and_rewrite(&mut server);
        pushed = server.client().len("q") as usize;
        assert!((safe..=all).contains(&pushed), "seed {seed}, power cut {cut}: {pushed} of {all}, {safe} were safe");
        let mut c = server.client();
        let ids = c.peek_ids("q ready COUNT 1000000");
        assert!(ids.iter().enumerate().all(|(nth, id)| *id == format!("m{nth}")), "seed {seed}: a gap in {ids:?}");
    }
}

/// Commands, saves and power cuts. A save that was answered stays until the next one.
fn cut_between_saves(seed: u64, cuts: usize) {
    let (mut disk, mut random) = (Disk::new(), Random::seeded(seed));
    let mut server = Server::on_disk(&disk, &[]);
    for cut in 0..cuts {
        let mut c = server.client();
        let mut go_on = |c: &mut Client| {
            let commands = 1 + random.below(COMMANDS);
            c.pipeline((0..commands).map(|_| lasting_command(&mut random)));
        };
        go_on(&mut c);
        c.ask("SAVE").ok();
        let saved = digest(&mut c);
        go_on(&mut c);
        let later = digest(&mut c);
        c.ask("BGSAVE").text();
        go_on(&mut c);
        disk.cut(&mut server, &mut random);
        server.boot();
        let found = digest(&mut server.client());
        assert!(
            found == saved || found == later,
            "seed {seed}, power cut {cut}: neither of the two last saves is there"
        );
    }
}

#[test]
fn a_power_cut_loses_nothing_answered_with_fsync_always() {
    cut_with_fsync_always(1, CUTS);
}

#[test]
fn a_power_cut_loses_only_what_came_after_the_fsync() {
    cut_with_fsync_each_second(1, CUTS);
}

#[test]
fn a_power_cut_leaves_the_last_save() {
    cut_between_saves(1, CUTS);
}

/// `make soak` runs this.
#[test]
#[ignore = "ten minutes: make soak"]
fn servers_keep_their_promises_through_ever_new_power_cuts() {
    let (seconds, first) = (soak_seconds(), new_seed());
    let start = Instant::now();
    let mut runs = 0;
    while start.elapsed() < Duration::from_secs(seconds) {
        cut_with_fsync_always(first + runs, 3 * CUTS);
        cut_with_fsync_each_second(first + runs, CUTS);
        cut_between_saves(first + runs, 3 * CUTS);
        runs += 1;
    }
    println!("{} power cuts in {} s", runs as usize * 7 * CUTS, start.elapsed().as_secs());
}

#[test]
fn a_power_cut_forgets_what_no_fsync_has_written() {
    let (mut disk, mut random) = (Disk::new(), Random::seeded(1));
    let mut server = Server::on_disk(&disk, &["--appendonly", "yes", "--appendfsync", "no"]);
    let mut lost = 0;
    for _ in 0..CUTS {
        let before = server.client().len("q");
        server.client().push("q x");
        disk.cut(&mut server, &mut random);
        server.boot();
        lost += before + 1 - server.client().len("q");
    }
    assert!(lost > 0, "a cut that loses nothing would show nothing");
}
