//! Errors: each names what is wrong and what is valid, and the command changes nothing.

use crate::support::{every_state, in_both_protocols, Reply, Server, SAMPLES};

/// What an error must say.
enum Says {
    /// Exactly this text.
    Exactly(&'static str),
    /// This text, followed by more that the contract leaves open.
    Starts(&'static str),
    /// The option, and both ends of the range.
    Range(&'static str, &'static str, &'static str),
}
use Says::{Exactly, Range, Starts};

const SYNTAX: Says = Starts("ERR syntax error");
const ARITY: Says = Starts("ERR wrong number of arguments for");
const RECEIPT: Says = Exactly("ERR a receipt is not an id: give only what stands before its '#'");
const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
const LATER_WITH_PAST: &str = "ERR syntax error, LATER does not go with ATTEMPT, ERROR, CHECKPOINT or DEAD";
const LONGEST: &str = "4398046511103";
const EARLIEST: &str = "100000000000";
const MOST: &str = "2147483647";
const LARGEST: &str = "9007199254740991";

/// Every error that a wrong word causes, on a queue `q` that holds a message `held` in flight.
const TABLE: &[(&str, Says)] = &[
    // Too few words, or too many.
    ("DQ.PUSH", ARITY),
    ("DQ.PUSH q", ARITY),
    ("DQ.POP", ARITY),
    ("DQ.ACK", ARITY),
    ("DQ.ACK q", ARITY),
    ("DQ.NACK q", ARITY),
    ("DQ.EXTEND q", ARITY),
    ("DQ.MEXTEND q 1", ARITY),
    ("DQ.LEN", ARITY),
    ("DQ.GET q", ARITY),
    ("DQ.GET q held more", ARITY),
    ("DQ.INFO", ARITY),
    ("DQ.INFO q more", ARITY),
    ("DQ.STATS", ARITY),
    ("DQ.STATS q more", ARITY),
    ("DQ.LEN q ready more", Starts("ERR ")),
    ("DQ.LEN q sleeping", Starts("ERR ")),
    ("DQ.MPUSH q", ARITY),
    ("DQ.MPUSH q 1", ARITY),
    ("DQ.ACKPOP q", ARITY),
    ("DQ.ACKPOP q 1", ARITY),
    ("DQ.MPOP", ARITY),
    ("DQ.MPOP 1", ARITY),
    ("DQ.CANCEL q", ARITY),
    ("DQ.RESCHEDULE q", ARITY),
    ("DQ.RESCHEDULE q held", ARITY),
    ("DQ.RESCHEDULE q held DELAY", SYNTAX),
    ("DQ.RESCHEDULE q held AT", SYNTAX),
    ("DQ.REDRIVE", ARITY),
    ("DQ.PURGE", ARITY),
    ("DQ.BATCH q b", ARITY),
    ("DQ.BATCHINFO q", ARITY),
    ("DQ.RELEASE q", ARITY),
    ("DQ.CONSUMERS q", ARITY),
    ("DQ.PEEK", ARITY),
    ("DQ.SCAN q", ARITY),
    ("DQ.CREATE", ARITY),
    ("DQ.ALTER", ARITY),
    ("DQ.PAUSE", ARITY),
    ("DQ.PAUSE q q", SYNTAX),
    ("DQ.RESUME", ARITY),
    ("DQ.RESUME q now", SYNTAX),
    ("DQ.RESUME q FOR 5", SYNTAX),
    ("DQ.RESUME q ALL IN", Exactly("ERR syntax error, give ALL or IN, not both")),
    ("DQ.PAUSE q IN OUT", Exactly("ERR syntax error, give IN or OUT, not both")),
    ("DQ.PAUSE q IN FOR 5 IN", SYNTAX),
    // Schedules.
    ("DQ.SCHEDULE q s", ARITY),
    ("DQ.SCHEDULE q s x", Exactly("ERR syntax error, give EVERY or CRON")),
    ("DQ.SCHEDULE q s x EVERY", SYNTAX),
    ("DQ.SCHEDULE q s x TIMES 1", Exactly("ERR syntax error, give EVERY or CRON")),
    ("DQ.SCHEDULE q s x OFFSET 1", Exactly("ERR syntax error, OFFSET needs EVERY")),
    ("DQ.SCHEDULE q s x EVERY 5 EVERY 5", SYNTAX),
    ("DQ.SCHEDULE q s x EVERY 5 DELAY 5", SYNTAX),
    ("DQ.SCHEDULE q s x EVERY 5 RETAIN 5", SYNTAX),
    ("DQ.SCHEDULE q s x EVERY 0", Range("EVERY", "1", LONGEST)),
    ("DQ.SCHEDULE q s x EVERY x", Range("EVERY", "1", LONGEST)),
    ("DQ.SCHEDULE q s x EVERY 5 OFFSET 5", Range("OFFSET", "0", "4")),
    ("DQ.SCHEDULE q s x OFFSET 1 EVERY 1", Range("OFFSET", "0", "0")),
    ("DQ.SCHEDULE q s x EVERY 5 TIMES 0", Range("TIMES", "1", MOST)),
    ("DQ.SCHEDULE q s x EVERY 5 LEASE 0", Range("LEASE", "1", LONGEST)),
    ("DQ.SCHEDULE q s x EVERY 5 UNTIL 1763700000", Starts("ERR UNTIL is Unix time in milliseconds; 1763700000 looks")),
    ("DQ.SCHEDULE q s x EVERY 5 AT 1763700000", Starts("ERR AT is Unix time in milliseconds; 1763700000 looks")),
    ("DQ.SCHEDULE q s x EVERY 5 UNTIL 100000000001", Exactly("ERR the first run would be after UNTIL")),
    ("DQ.SCHEDULE q held x EVERY 5 UNTIL 100000000001", Exactly("ERR the first run would be after UNTIL")),
    (
        "DQ.SCHEDULE q s x EVERY 5 AT 8000000000001 UNTIL 8000000000000",
        Exactly("ERR the first run would be after UNTIL"),
    ),
    ("DQ.SCHEDULE q s x EVERY 5 CRON @daily", Exactly("ERR syntax error, give EVERY or CRON, not both")),
    ("DQ.SCHEDULE q s x EVERY 5 TZ UTC", Exactly("ERR syntax error, TZ needs CRON")),
    ("DQ.SCHEDULE q s x CRON @daily OFFSET 5", Exactly("ERR syntax error, OFFSET needs EVERY")),
    ("DQ.SCHEDULE q s x CRON", SYNTAX),
    ("DQ.SCHEDULE q s x CRON @daily TZ", SYNTAX),
    ("DQ.SCHEDULE q s x CRON @reboot", Starts("ERR CRON must be five fields (minute, hour, day of month, month,")),
    ("DQ.SCHEDULE q s x CRON 0 9 * * 1-5", Starts("ERR CRON must be five fields (minute, hour, day of month, month, ")),
    ("DQ.SCHEDULE q s x CRON 5", Starts("ERR CRON must be five fields")),
    ("DQ.SCHEDULE q s x CRON @daily TZ Mars/Olympus", Starts("ERR unknown time zone 'Mars/Olympus': TZ is a name")),
    ("DQ.SCHEDULE q 1760000000000-1 x EVERY 5", Starts("ERR ID must be")),
    ("DQ.SCHEDULE q a#1 x EVERY 5", Starts("ERR ID must be")),
    ("DQ.SCAN q 0 RECURRING RECURRING", SYNTAX),
    ("DQ.SCAN q 0 SEQUENCE SEQUENCE", SYNTAX),
    // A word that is not a state, or a state where none is expected.
    ("DQ.PURGE q sleeping", Starts("ERR ")),
    ("DQ.PURGE q dead sleeping", Starts("ERR ")),
    ("DQ.PEEK q sleeping", Starts("ERR ")),
    ("DQ.PEEK q ready dead", Starts("ERR ")),
    ("DQ.PEEK q COUNT 1 ready", Starts("ERR ")),
    ("DQ.SCAN q 0 STATE sleeping", Starts("ERR ")),
    ("DQ.SCAN q 0 ready", SYNTAX),
    // Counts that do not fit what follows.
    ("DQ.MPUSH q 3 a b", Exactly("ERR syntax error, count is 3 but 2 payloads follow")),
    ("DQ.MPUSH q 2147483647 a b", Exactly("ERR syntax error, count is 2147483647 but 2 payloads follow")),
    ("DQ.MPUSH q 1 a b", SYNTAX),
    ("DQ.MPUSH q 3 a b c IDS x y", Exactly("ERR syntax error, IDS needs 3 ids")),
    ("DQ.MPUSH q 1 a IDS", Exactly("ERR syntax error, IDS needs 1 id")),
    ("DQ.MPUSH q 1 a IDS x y", SYNTAX),
    ("DQ.MPOP 3 q r", Exactly("ERR syntax error, numkeys is 3 but 2 keys follow")),
    ("DQ.MPOP 2147483647 q", Exactly("ERR syntax error, numkeys is 2147483647 but 1 key follows")),
    ("DQ.MPOP 1 q r", SYNTAX),
    ("DQ.ACKPOP q 3 held x", Exactly("ERR syntax error, count is 3 but 2 receipts follow")),
    ("DQ.ACKPOP q 2147483647 held", Exactly("ERR syntax error, count is 2147483647 but 1 receipt follows")),
    ("DQ.ACKPOP q 1 held x", SYNTAX),
    // A receipt where only an id can be meant.
    ("DQ.GET q held#1", RECEIPT),
    ("DQ.AWAIT q held#1", RECEIPT),
    ("DQ.BURY q held#1", RECEIPT),
    ("DQ.CANCEL q held held#1", RECEIPT),
    ("DQ.CANCEL none #", RECEIPT),
    ("DQ.RESCHEDULE q held#1 DELAY 1", RECEIPT),
    ("DQ.REDRIVE q IDS 2 held held#1", RECEIPT),
    ("DQ.REDRIVE q IDS 3 a b", SYNTAX),
    ("DQ.REDRIVE q IDS 1 a b", SYNTAX),
    ("DQ.REDRIVE q IDS 1", SYNTAX),
    // An option that does not exist, is given twice, or has no value.
    ("DQ.PUSH q x BOGUS", SYNTAX),
    ("DQ.PUSH q x DELAY 1 more", SYNTAX),
    ("DQ.PUSH q x DELAY", SYNTAX),
    ("DQ.PUSH q x AT", SYNTAX),
    ("DQ.PUSH q x ID", SYNTAX),
    ("DQ.PUSH q x PRIORITY", SYNTAX),
    ("DQ.PUSH q x RETRIES", SYNTAX),
    ("DQ.PUSH q x LEASE", SYNTAX),
    ("DQ.PUSH q x TTL", SYNTAX),
    ("DQ.PUSH q x DELAY 1 DELAY 1", SYNTAX),
    ("DQ.PUSH q x DELAY 1 delay 1", SYNTAX),
    ("DQ.PUSH q x AT 100000000001 AT 100000000001", SYNTAX),
    ("DQ.PUSH q x DELAY 1 AT 100000000001", SYNTAX),
    ("DQ.PUSH q x AT 100000000001 DELAY 1", SYNTAX),
    ("DQ.PUSH q x ID a ID a", SYNTAX),
    ("DQ.PUSH q x PRIORITY 1 PRIORITY 1", SYNTAX),
    ("DQ.PUSH q x RETRIES 1 RETRIES 1", SYNTAX),
    ("DQ.PUSH q x LEASE 1 LEASE 1", SYNTAX),
    ("DQ.PUSH q x TTL 1 TTL 1", SYNTAX),
    ("DQ.PUSH q x ID held REPLACE REPLACE", SYNTAX),
    ("DQ.PUSH q x REPLACE", Exactly("ERR syntax error, REPLACE needs ID")),
    ("DQ.PUSH q x DELAY 5 REPLACE", Exactly("ERR syntax error, REPLACE needs ID")),
    ("DQ.PUSH q x ID new MAXWAIT 5", Exactly("ERR syntax error, MAXWAIT needs REPLACE")),
    ("DQ.PUSH q x ID new LATER", Exactly("ERR syntax error, LATER needs REPLACE")),
    ("DQ.PUSH q x REPLACE LATER", Exactly("ERR syntax error, REPLACE needs ID")),
    ("DQ.PUSH q x ID new REPLACE LATER LATER", SYNTAX),
    ("DQ.MPUSH q 1 x IDS new LATER", Exactly("ERR syntax error, LATER needs REPLACE")),
    ("DQ.PUSH q x REASON expired", Exactly("ERR syntax error, REASON needs DEAD")),
    ("DQ.MPUSH q 1 x REASON expired", Exactly("ERR syntax error, REASON needs DEAD")),
    ("DQ.PUSH q x DEAD DEAD", SYNTAX),
    ("DQ.PUSH q x DEAD REASON old", Exactly("ERR REASON must be retries or rejected or expired")),
    ("DQ.PUSH q x ATTEMPT -1", Exactly("ERR ATTEMPT must be a whole number from 0 to 2147483647")),
    ("DQ.PUSH q x ATTEMPT 2147483648", Exactly("ERR ATTEMPT must be a whole number from 0 to 2147483647")),
    ("DQ.PUSH q x ERROR", SYNTAX),
    ("DQ.PUSH q x ID new REPLACE LATER ATTEMPT 1", Exactly(LATER_WITH_PAST)),
    ("DQ.PUSH q x ID new REPLACE LATER ERROR oh", Exactly(LATER_WITH_PAST)),
    ("DQ.PUSH q x ID new REPLACE LATER CHECKPOINT half", Exactly(LATER_WITH_PAST)),
    ("DQ.MPUSH q 1 x IDS new DEAD REPLACE LATER", Exactly(LATER_WITH_PAST)),
    ("DQ.PUSH q x ID new REPLACE MAXWAIT", SYNTAX),
    ("DQ.PUSH q x ID new REPLACE MAXWAIT 5 MAXWAIT 5", SYNTAX),
    ("DQ.PUSH q x ID new REPLACE MAXWAIT -1", Range("MAXWAIT", "0", LONGEST)),
    ("DQ.PUSH q x ID new REPLACE MAXWAIT 4398046511104", Range("MAXWAIT", "0", LONGEST)),
    ("DQ.PUSH q x COUNT 1", SYNTAX),
    ("DQ.POP q BOGUS", SYNTAX),
    ("DQ.POP q 1", SYNTAX),
    ("DQ.POP q COUNT", SYNTAX),
    ("DQ.POP q LEASE", SYNTAX),
    ("DQ.POP q BLOCK", SYNTAX),
    ("DQ.POP q COUNT 1 COUNT 1", SYNTAX),
    ("DQ.POP q LEASE 1 LEASE 1", SYNTAX),
    ("DQ.POP q BLOCK 1 BLOCK 1", SYNTAX),
    ("DQ.POP q NOACK NOACK", SYNTAX),
    ("DQ.NACK q held BOGUS", SYNTAX),
    ("DQ.NACK q held more DEAD", SYNTAX),
    ("DQ.NACK q held DELAY", SYNTAX),
    ("DQ.NACK q held ERROR", SYNTAX),
    ("DQ.NACK q held DELAY 1 DELAY 1", SYNTAX),
    ("DQ.NACK q held ERROR a ERROR a", SYNTAX),
    ("DQ.NACK q held DEAD DEAD", SYNTAX),
    ("DQ.EXTEND q held BOGUS", SYNTAX),
    ("DQ.EXTEND q held 5", SYNTAX),
    ("DQ.EXTEND q held LEASE", SYNTAX),
    ("DQ.EXTEND q held LEASE 1 LEASE 1", SYNTAX),
    ("DQ.MEXTEND q 2 held", SYNTAX),
    ("DQ.POP q AS", SYNTAX),
    ("DQ.POP q AS a AS b", SYNTAX),
    ("DQ.POP q AS \"\"", Exactly("ERR AS must be 1 to 128 bytes")),
    ("DQ.BATCH q b THEN", SYNTAX),
    ("DQ.BATCH q b THEN x THEN y", SYNTAX),
    ("DQ.BATCH q b CANCEL CANCEL", SYNTAX),
    ("DQ.BATCH q b BOGUS", SYNTAX),
    ("DQ.BATCH q b ID m", Exactly("ERR syntax error, ID needs THEN")),
    ("DQ.BATCH q b CANCEL DELAY 5", Exactly("ERR syntax error, DELAY needs THEN")),
    ("DQ.BATCH q b THEN x CANCEL", Exactly("ERR syntax error, give THEN or CANCEL, not both")),
    ("DQ.BATCH q \"\" CANCEL", Exactly("ERR BATCH must be 1 to 255 bytes")),
    ("DQ.BATCH q b THEN x LEASE 0", Range("LEASE", "1", "4398046511103")),
    ("DQ.PUSH q x BATCH", SYNTAX),
    ("DQ.PUSH q x BATCH a BATCH b", SYNTAX),
    ("DQ.MPUSH q 1 x BATCH \"\"", Exactly("ERR BATCH must be 1 to 255 bytes")),
    ("DQ.RELEASE q w NOCOUNT NOCOUNT", SYNTAX),
    ("DQ.RELEASE q w COUNT", SYNTAX),
    ("DQ.RELEASE q w COUNT 0", Range("COUNT", "1", MOST)),
    ("DQ.CONSUMERS q x", Exactly("ERR invalid cursor: give 0, or the cursor that the last call returned")),
    ("DQ.CONSUMERS q 0 COUNT 0", Range("COUNT", "1", MOST)),
    ("DQ.MEXTEND q 1 held BOGUS", SYNTAX),
    ("DQ.MEXTEND q 1 held LEASE", SYNTAX),
    ("DQ.MEXTEND q 1 held LEASE 1 LEASE 1", SYNTAX),
    ("DQ.MPUSH q 1 x BOGUS", SYNTAX),
    ("DQ.MPUSH q 1 x ID a", SYNTAX),
    ("DQ.MPUSH q 1 x DELAY", SYNTAX),
    ("DQ.MPUSH q 1 x TTL", SYNTAX),
    ("DQ.MPUSH q 1 x IDS a IDS b", SYNTAX),
    ("DQ.MPUSH q 1 x DELAY 1 DELAY 1", SYNTAX),
    ("DQ.MPUSH q 1 x DELAY 1 AT 100000000001", SYNTAX),
    ("DQ.MPUSH q 1 x PRIORITY 1 priority 1", SYNTAX),
    ("DQ.MPUSH q 1 x IDS held REPLACE REPLACE", SYNTAX),
    ("DQ.MPUSH q 1 x IDS new MAXWAIT 5", Exactly("ERR syntax error, MAXWAIT needs REPLACE")),
    ("DQ.MPUSH q 1 x REPLACE MAXWAIT 5", Exactly("ERR syntax error, REPLACE needs IDS")),
    ("DQ.MPUSH q 1 x REPLACE", Exactly("ERR syntax error, REPLACE needs IDS")),
    ("DQ.MPUSH q 2 x y DELAY 5 REPLACE", Exactly("ERR syntax error, REPLACE needs IDS")),
    ("DQ.ACKPOP q 1 held BOGUS", SYNTAX),
    ("DQ.ACKPOP q 1 held NOACK", SYNTAX),
    ("DQ.ACKPOP q 1 held COUNT", SYNTAX),
    ("DQ.ACKPOP q 1 held COUNT 1 COUNT 1", SYNTAX),
    ("DQ.ACKPOP q 1 held LEASE 1 LEASE 1", SYNTAX),
    ("DQ.ACKPOP q 1 held BLOCK 1 BLOCK 1", SYNTAX),
    ("DQ.MPOP 1 q BOGUS", SYNTAX),
    ("DQ.MPOP 2 q COUNT 5", SYNTAX),
    ("DQ.MPOP 1 q COUNT", SYNTAX),
    ("DQ.MPOP 1 q BLOCK", SYNTAX),
    ("DQ.MPOP 1 q COUNT 1 COUNT 1", SYNTAX),
    ("DQ.MPOP 1 q LEASE 1 LEASE 1", SYNTAX),
    ("DQ.MPOP 1 q NOACK NOACK", SYNTAX),
    ("DQ.RESCHEDULE q held SOON 5", SYNTAX),
    ("DQ.RESCHEDULE q held DELAY 5 more", SYNTAX),
    ("DQ.RESCHEDULE q held DELAY 1 AT 100000000001", SYNTAX),
    ("DQ.RESCHEDULE q held DELAY 1 DELAY 1", SYNTAX),
    ("DQ.RESCHEDULE q held AT 100000000001 DELAY", SYNTAX),
    ("DQ.REDRIVE q BOGUS", SYNTAX),
    ("DQ.REDRIVE q 5", SYNTAX),
    ("DQ.REDRIVE q COUNT", SYNTAX),
    ("DQ.REDRIVE q IDS", SYNTAX),
    ("DQ.REDRIVE q DELAY", SYNTAX),
    ("DQ.REDRIVE q COUNT 1 COUNT 1", SYNTAX),
    ("DQ.REDRIVE q COUNT 1 IDS 1 a", SYNTAX),
    ("DQ.REDRIVE q IDS 1 a COUNT 1", SYNTAX),
    ("DQ.REDRIVE q IDS 1 a IDS 1 b", SYNTAX),
    ("DQ.REDRIVE q DELAY 1 DELAY 1", SYNTAX),
    ("DQ.PEEK q COUNT", SYNTAX),
    ("DQ.PEEK q dead COUNT 1 COUNT 1", SYNTAX),
    ("DQ.SCAN q 0 BOGUS", SYNTAX),
    ("DQ.SCAN q 0 STATE", SYNTAX),
    ("DQ.SCAN q 0 COUNT", SYNTAX),
    ("DQ.SCAN q 0 COUNT 1 COUNT 1", SYNTAX),
    ("DQ.SCAN q 0 STATE dead STATE dead", SYNTAX),
    ("DQ.SCAN q next", Starts("ERR invalid cursor")),
    ("DQ.SCAN q -1", Starts("ERR invalid cursor")),
    ("DQ.SCAN q 01", Starts("ERR invalid cursor")),
    ("DQ.GROUPS q 00", Starts("ERR invalid cursor")),
    ("DQ.CONSUMERS q 05", Starts("ERR invalid cursor")),
    ("DQ.SCAN q \"\"", Starts("ERR invalid cursor")),
    ("DQ.CREATE q BOGUS 1", SYNTAX),
    ("DQ.CREATE q 5", SYNTAX),
    ("DQ.CREATE q LEASE", SYNTAX),
    ("DQ.CREATE q BACKOFF", SYNTAX),
    ("DQ.CREATE q BACKOFF 5", SYNTAX),
    ("DQ.CREATE q MAXLEN 1 maxlen 1", SYNTAX),
    ("DQ.ALTER q BOGUS 1", SYNTAX),
    ("DQ.ALTER q LEASE", SYNTAX),
    ("DQ.ALTER q RETRIES", SYNTAX),
    ("DQ.ALTER q TTL", SYNTAX),
    ("DQ.ALTER q MAXLEN", SYNTAX),
    ("DQ.ALTER q MAXINFLIGHT", SYNTAX),
    ("DQ.ALTER q DEADLEN", SYNTAX),
    ("DQ.ALTER q BACKOFF 5", SYNTAX),
    ("DQ.ALTER q BACKOFF 1 2 BACKOFF 1 2", SYNTAX),
    ("DQ.ALTER q LEASE 1 LEASE 1", SYNTAX),
    ("DQ.ALTER q DEADLEN 0 DEADLEN 0", SYNTAX),
    ("DQ.ALTER q PRIORITY 1", SYNTAX),
    // A number that is malformed or out of range.
    ("DQ.PUSH q x DELAY -1", Exactly("ERR DELAY must be a whole number of milliseconds from 0 to 4398046511103")),
    ("DQ.PUSH q x delay 1.5", Exactly("ERR DELAY must be a whole number of milliseconds from 0 to 4398046511103")),
    ("DQ.NACK q held DELAY x", Exactly("ERR DELAY must be a whole number of milliseconds from 0 to 4398046511103")),
    ("DQ.PUSH q x DELAY 4398046511104", Range("DELAY", "0", LONGEST)),
    ("DQ.PUSH q x DELAY soon", Range("DELAY", "0", LONGEST)),
    ("DQ.PUSH q x DELAY \"\"", Range("DELAY", "0", LONGEST)),
    ("DQ.PUSH q x DELAY 1e3", Range("DELAY", "0", LONGEST)),
    ("DQ.PUSH q x DELAY 0x10", Range("DELAY", "0", LONGEST)),
    ("DQ.PUSH q x DELAY 18446744073709551616", Range("DELAY", "0", LONGEST)),
    ("DQ.PUSH q x DELAY -9223372036854775809", Range("DELAY", "0", LONGEST)),
    ("DQ.PUSH q x AT -1", Range("AT", EARLIEST, "8796093022207")),
    ("DQ.PUSH q x AT 8796093022208", Range("AT", EARLIEST, "8796093022207")),
    ("DQ.PUSH q x AT noon", Range("AT", EARLIEST, "8796093022207")),
    ("DQ.PUSH q x PRIORITY -129", Range("PRIORITY", "-128", "127")),
    ("DQ.PUSH q x PRIORITY 128", Range("PRIORITY", "-128", "127")),
    ("DQ.PUSH q x PRIORITY high", Range("PRIORITY", "-128", "127")),
    ("DQ.PUSH q x RETRIES -2", Range("RETRIES", "-1", MOST)),
    ("DQ.PUSH q x RETRIES 2147483648", Range("RETRIES", "-1", MOST)),
    ("DQ.PUSH q x LEASE 0", Range("LEASE", "1", LONGEST)),
    ("DQ.PUSH q x LEASE 4398046511104", Range("LEASE", "1", LONGEST)),
    ("DQ.PUSH q x TTL -1", Range("TTL", "0", LONGEST)),
    ("DQ.PUSH q x TTL 4398046511104", Range("TTL", "0", LONGEST)),
    ("DQ.POP q COUNT 0", Range("COUNT", "1", MOST)),
    ("DQ.POP q COUNT -1", Range("COUNT", "1", MOST)),
    ("DQ.POP q COUNT 2147483648", Range("COUNT", "1", MOST)),
    ("DQ.POP q COUNT all", Range("COUNT", "1", MOST)),
    ("DQ.POP q LEASE 0", Range("LEASE", "1", LONGEST)),
    ("DQ.POP q LEASE -1", Range("LEASE", "1", LONGEST)),
    ("DQ.POP q LEASE 4398046511104", Range("LEASE", "1", LONGEST)),
    ("DQ.POP q BLOCK -1", Range("BLOCK", "0", LONGEST)),
    ("DQ.POP q BLOCK 0.5", Range("BLOCK", "0", LONGEST)),
    ("DQ.POP q BLOCK 4398046511104", Range("BLOCK", "0", LONGEST)),
    ("DQ.NACK q held DELAY -1", Range("DELAY", "0", LONGEST)),
    ("DQ.NACK q held DELAY 4398046511104", Range("DELAY", "0", LONGEST)),
    ("DQ.NACK q held DEAD DELAY -1", Range("DELAY", "0", LONGEST)),
    ("DQ.EXTEND q held LEASE 0", Range("LEASE", "1", LONGEST)),
    ("DQ.EXTEND q held LEASE 4398046511104", Range("LEASE", "1", LONGEST)),
    ("DQ.EXTEND q held LEASE long", Range("LEASE", "1", LONGEST)),
    ("DQ.MPUSH q 0 x", Exactly("ERR count must be a whole number from 1 to 2147483647")),
    ("DQ.MPUSH q many x", Range("count", "1", MOST)),
    ("DQ.MPUSH q -1 x", Range("count", "1", MOST)),
    ("DQ.MPUSH q 2147483648 x", Range("count", "1", MOST)),
    ("DQ.MPUSH q 1 x DELAY -1", Range("DELAY", "0", LONGEST)),
    ("DQ.MPUSH q 1 x AT noon", Range("AT", EARLIEST, "8796093022207")),
    ("DQ.MPUSH q 1 x PRIORITY 128", Range("PRIORITY", "-128", "127")),
    ("DQ.MPUSH q 1 x RETRIES -2", Range("RETRIES", "-1", MOST)),
    ("DQ.MPUSH q 1 x LEASE 0", Range("LEASE", "1", LONGEST)),
    ("DQ.MPUSH q 1 x IDS new TTL -1", Range("TTL", "0", LONGEST)),
    ("DQ.ACKPOP q 0 held", Exactly("ERR count must be a whole number from 1 to 2147483647")),
    ("DQ.ACKPOP q held 1", Range("count", "1", MOST)),
    ("DQ.ACKPOP q 1 held COUNT 0", Range("COUNT", "1", MOST)),
    ("DQ.ACKPOP q 1 held LEASE 0", Range("LEASE", "1", LONGEST)),
    ("DQ.ACKPOP q 1 held BLOCK -1", Range("BLOCK", "0", LONGEST)),
    ("DQ.MPOP 0 q", Exactly("ERR numkeys must be a whole number from 1 to 2147483647")),
    ("DQ.MPOP q q", Range("numkeys", "1", MOST)),
    ("DQ.MPOP -1 q", Range("numkeys", "1", MOST)),
    ("DQ.MPOP 2147483648 q", Range("numkeys", "1", MOST)),
    ("DQ.MPOP 1 q COUNT 0", Range("COUNT", "1", MOST)),
    ("DQ.MPOP 1 q LEASE 0", Range("LEASE", "1", LONGEST)),
    ("DQ.MPOP 1 q BLOCK -1", Range("BLOCK", "0", LONGEST)),
    ("DQ.MPOP 1 q BLOCK 4398046511104", Range("BLOCK", "0", LONGEST)),
    ("DQ.RESCHEDULE q held DELAY -1", Range("DELAY", "0", LONGEST)),
    ("DQ.RESCHEDULE q held DELAY 4398046511104", Range("DELAY", "0", LONGEST)),
    ("DQ.RESCHEDULE q held AT -1", Range("AT", EARLIEST, "8796093022207")),
    ("DQ.RESCHEDULE q held AT 8796093022208", Range("AT", EARLIEST, "8796093022207")),
    ("DQ.REDRIVE q COUNT 0", Range("COUNT", "1", MOST)),
    ("DQ.REDRIVE q COUNT 2147483648", Range("COUNT", "1", MOST)),
    ("DQ.REDRIVE q IDS 0", Range("IDS", "1", MOST)),
    ("DQ.REDRIVE q IDS a b", Range("IDS", "1", MOST)),
    ("DQ.REDRIVE q DELAY -1", Range("DELAY", "0", LONGEST)),
    ("DQ.PEEK q COUNT 0", Range("COUNT", "1", MOST)),
    ("DQ.PEEK q dead COUNT all", Range("COUNT", "1", MOST)),
    ("DQ.PEEK q COUNT 2147483648", Range("COUNT", "1", MOST)),
    ("DQ.SCAN q 0 COUNT 0", Range("COUNT", "1", MOST)),
    ("DQ.SCAN q 0 COUNT 2147483648", Range("COUNT", "1", MOST)),
    ("DQ.CREATE q LEASE 0", Range("LEASE", "1", LONGEST)),
    ("DQ.CREATE q BACKOFF 2 1", Exactly("ERR BACKOFF base must not be above its max")),
    ("DQ.ALTER q LEASE 0", Range("LEASE", "1", LONGEST)),
    ("DQ.ALTER q LEASE 4398046511104", Range("LEASE", "1", LONGEST)),
    ("DQ.ALTER q MAXLEASE -1", Range("MAXLEASE", "0", LONGEST)),
    ("DQ.ALTER q DELAY -1", Range("DELAY", "0", LONGEST)),
    ("DQ.MEXTEND q 0 held", Range("count", "1", MOST)),
    ("DQ.MEXTEND q 1 held LEASE 0", Range("LEASE", "1", LONGEST)),
    ("DQ.ALTER q RETRIES -2", Range("RETRIES", "-1", MOST)),
    ("DQ.ALTER q RETRIES 2147483648", Range("RETRIES", "-1", MOST)),
    ("DQ.ALTER q TTL -1", Range("TTL", "0", LONGEST)),
    ("DQ.ALTER q TTL 4398046511104", Range("TTL", "0", LONGEST)),
    ("DQ.ALTER q MAXLEN -1", Range("MAXLEN", "0", LARGEST)),
    ("DQ.ALTER q MAXLEN 9007199254740992", Range("MAXLEN", "0", LARGEST)),
    ("DQ.ALTER q MAXINFLIGHT -1", Range("MAXINFLIGHT", "0", LARGEST)),
    ("DQ.ALTER q MAXINFLIGHT 9007199254740992", Range("MAXINFLIGHT", "0", LARGEST)),
    ("DQ.ALTER q DEADLEN -2", Range("DEADLEN", "-1", LARGEST)),
    ("DQ.ALTER q DEADLEN 9007199254740992", Range("DEADLEN", "-1", LARGEST)),
    ("DQ.ALTER q BACKOFF -1 5", Exactly("ERR BACKOFF must be a whole number of milliseconds from 0 to 4398046511103")),
    ("DQ.ALTER q BACKOFF 5 4398046511104", Range("BACKOFF", "0", LONGEST)),
    ("DQ.ALTER q BACKOFF soon late", Range("BACKOFF", "0", LONGEST)),
    ("DQ.ALTER q BACKOFF 5 4", Exactly("ERR BACKOFF base must not be above its max")),
    ("DQ.ALTER q LEASE 5 DEADLEN many", Range("DEADLEN", "-1", LARGEST)),
    // A time that is given in seconds.
    ("DQ.PUSH q x AT 1763700000", Exactly("ERR AT is Unix time in milliseconds; 1763700000 looks like seconds")),
    ("DQ.PUSH q x at 0", Exactly("ERR AT is Unix time in milliseconds; 0 looks like seconds")),
    ("DQ.PUSH q x AT 99999999999", Exactly("ERR AT is Unix time in milliseconds; 99999999999 looks like seconds")),
    ("DQ.MPUSH q 1 x AT 1763700000", Exactly("ERR AT is Unix time in milliseconds; 1763700000 looks like seconds")),
    ("DQ.RESCHEDULE q later AT 5", Exactly("ERR AT is Unix time in milliseconds; 5 looks like seconds")),
    // Commands and options that were added later.
    ("DQ.BURY q", ARITY),
    ("DQ.BURY q held ERROR", Exactly("ERR syntax error, ERROR needs a value")),
    ("DQ.BURY q held ERROR a ERROR b", Exactly("ERR syntax error, ERROR is given twice")),
    (
        "DQ.BURY q held other",
        Exactly("ERR syntax error, unknown option 'other'; the syntax is DQ.BURY key id [ERROR error]"),
    ),
    ("DQ.PROMOTE", ARITY),
    ("DQ.PROMOTE q 5", SYNTAX),
    ("DQ.PROMOTE q COUNT", SYNTAX),
    ("DQ.PROMOTE q COUNT 1 COUNT 1", SYNTAX),
    ("DQ.PROMOTE q COUNT 0", Range("COUNT", "1", MOST)),
    ("DQ.PROMOTE q COUNT 2147483648", Range("COUNT", "1", MOST)),
    ("DQ.PROMOTE q UNTIL", SYNTAX),
    ("DQ.PROMOTE q UNTIL -1", Range("UNTIL", EARLIEST, "8796093022207")),
    ("DQ.PROMOTE q UNTIL 8796093022208", Range("UNTIL", EARLIEST, "8796093022207")),
    ("DQ.PROMOTE q UNTIL 1763700000", Exactly("ERR UNTIL is Unix time in milliseconds; 1763700000 looks like seconds")),
    ("DQ.PURGE q OLDER", SYNTAX),
    ("DQ.PURGE q OLDER -1", Range("OLDER", "0", LONGEST)),
    ("DQ.PURGE q dead OLDER 1 OLDER 1", SYNTAX),
    ("DQ.REDRIVE q OLDER 4398046511104", Range("OLDER", "0", LONGEST)),
    ("DQ.REDRIVE q OLDER 1 OLDER 1", SYNTAX),
    ("DQ.REDRIVE q OLDER 1 IDS 1 a", Exactly("ERR syntax error, give OLDER or IDS, not both")),
    ("DQ.REDRIVE q IDS 1 a REASON expired", Exactly("ERR syntax error, give REASON or IDS, not both")),
    ("DQ.REDRIVE q REASON", SYNTAX),
    ("DQ.REDRIVE q REASON old", Exactly("ERR REASON must be retries or rejected or expired")),
    ("DQ.REDRIVE q REASON expired REASON retries", SYNTAX),
    ("DQ.NACK q held DEAD NOCOUNT", Exactly("ERR syntax error, give DEAD or NOCOUNT, not both")),
    ("DQ.NACK q held NOCOUNT DELAY 5 DEAD", Exactly("ERR syntax error, give DEAD or NOCOUNT, not both")),
    ("DQ.NACK q held NOCOUNT NOCOUNT", SYNTAX),
    ("DQ.RESCHEDULE q held PRIORITY", Exactly("ERR syntax error, PRIORITY needs a value")),
    ("DQ.RESCHEDULE q later PRIORITY 128", Range("PRIORITY", "-128", "127")),
    ("DQ.RESCHEDULE q later PRIORITY 1 PRIORITY 1", SYNTAX),
    ("DQ.RESCHEDULE q later PRIORITY 1 DELAY", SYNTAX),
    ("DQ.PAUSE q FOR", Exactly("ERR syntax error, FOR needs a value")),
    ("DQ.PAUSE q FOR 0", Range("FOR", "1", LONGEST)),
    ("DQ.PAUSE q FOR 4398046511104", Range("FOR", "1", LONGEST)),
    ("DQ.PAUSE q FOR 5 FOR 5", SYNTAX),
    ("DQ.PURGE q dead COUNT 0", Range("COUNT", "1", MOST)),
    ("DQ.PURGE q COUNT", SYNTAX),
    ("DQ.PURGE q COUNT 1 dead", SYNTAX),
    ("DQ.PURGE q dead COUNT 1 COUNT 1", SYNTAX),
    ("DQ.CREATE q MKQUEUE", SYNTAX),
    ("DQ.ALTER q MKQUEUE MKQUEUE", SYNTAX),
    ("DQ.ALTER q BACKOFF", Exactly("ERR syntax error, BACKOFF needs the values base-ms and max-ms")),
    ("DQ.ALTER q BACKOFF 5", Exactly("ERR syntax error, BACKOFF needs the values base-ms and max-ms")),
    ("DQ.ALTER q BACKOFF 5 LEASE 5", Exactly("ERR syntax error, BACKOFF needs the values base-ms and max-ms")),
    ("DQ.CREATE q BACKOFF 5 JITTER 5", Exactly("ERR syntax error, BACKOFF needs the values base-ms and max-ms")),
    ("DQ.ALTER q BACKOFF 5 6 JITTER", Exactly("ERR syntax error, JITTER needs a value")),
    ("DQ.ALTER q BACKOFF 5 6 JITTER 101", Exactly("ERR JITTER must be a whole number from 0 to 100")),
    ("DQ.ALTER q BACKOFF 5 6 JITTER -1", Range("JITTER", "0", "100")),
    ("DQ.ALTER q BACKOFF 5 6 JITTER 5 JITTER 5", SYNTAX),
    ("DQ.ALTER q JITTER 5", SYNTAX),
    ("DQ.ALTER q DEADTTL -1", Range("DEADTTL", "0", LONGEST)),
    ("DQ.ALTER q DEADTTL 4398046511104", Range("DEADTTL", "0", LONGEST)),
    ("DQ.ALTER q DEADTTL", SYNTAX),
    ("DQ.ALTER q MAXPAYLOAD -1", Range("MAXPAYLOAD", "0", "536870912")),
    ("DQ.ALTER q MAXPAYLOAD 536870913", Range("MAXPAYLOAD", "0", "536870912")),
    ("DQ.ALTER q MAXPAYLOAD", SYNTAX),
    ("DQ.ALTER q DEDUPE -1", Range("DEDUPE", "0", "604800000")),
    ("DQ.ALTER q DEDUPE 604800001", Range("DEDUPE", "0", "604800000")),
    ("DQ.ALTER q DEDUPE", SYNTAX),
    ("DQ.MPUSH q 2 x", Exactly("ERR syntax error, count is 2 but 1 payload follows")),
    ("DQ.REDRIVE q IDS 2 a", Exactly("ERR syntax error, IDS is 2 but 1 id follows")),
    // A name that a producer may not give.
    ("DQ.PUSH q x ID \"\"", Starts("ERR ")),
    ("DQ.PUSH q x ID a#b", Starts("ERR ")),
    ("DQ.PUSH q x ID 123456789012-34", Starts("ERR ")),
    ("DQ.PUSH q x ID 123456789012-34 REPLACE", Starts("ERR ")),
    ("DQ.MPUSH q 1 x IDS \"\"", Starts("ERR ")),
    ("DQ.MPUSH q 2 x y IDS new a#b", Starts("ERR ")),
    ("DQ.MPUSH q 2 x y IDS 123456789012-34 new REPLACE", Starts("ERR ")),
];

impl Says {
    #[track_caller]
    fn expect(&self, line: &str, reply: &Reply) {
        let Reply::Error(text) = reply else { panic!("{line}: {reply:?} is no error") };
        let fits = match self {
            Exactly(all) => text == all,
            Starts(start) => text.starts_with(start),
            Range(option, from, to) => {
                text.starts_with(&format!("ERR {option} must be")) && text.contains(&format!("from {from} to {to}"))
            }
        };
        assert!(fits, "{line}: {text}");
    }
}

#[test]
fn every_wrong_word_is_named_and_changes_nothing() {
    in_both_protocols(|c| {
        every_state(c, "q");
        let (digest, about, len) = (c.digest("q"), c.about_but_time("q"), c.len("q"));
        for (line, says) in TABLE {
            says.expect(line, &c.ask(line));
            assert_eq!(c.digest("q"), digest, "{line}");
            assert_eq!(c.about_but_time("q"), about, "{line}");
        }
        assert_eq!(c.len("q"), len);
    });
}

#[test]
fn a_misplaced_word_is_answered_with_the_syntax() {
    let server = Server::start();
    let mut c = server.client();
    for (line, wrong, syntax) in [
        (
            "DQ.PEEK q STATE dead",
            "unknown state 'STATE': delayed, ready, inflight, dead or done",
            "DQ.PEEK key [DELAYED | READY | INFLIGHT | DEAD | DONE] [COUNT count]",
        ),
        (
            "DQ.PEEK q COUNT 1 dead",
            "'dead' is not in its place",
            "DQ.PEEK key [DELAYED | READY | INFLIGHT | DEAD | DONE] [COUNT count]",
        ),
        (
            "DQ.PUSH q x MAXLEN 5",
            "unknown option 'MAXLEN': it is a setting of the queue, for DQ.CREATE and DQ.ALTER",
            "DQ.PUSH key payload [ID id] [DELAY ms | AT unix-ms] [PRIORITY priority] [RETRIES retries] \
             [LEASE lease-ms] [TTL ttl-ms] [REPLACE] [MAXWAIT maxwait-ms] [LATER] [RETAIN retain-ms]",
        ),
        ("DQ.MPOP 1 q now", "unknown option 'now'", "DQ.MPOP numkeys key [key ...] [COUNT count] [MIN least]"),
        (
            "DQ.PAUSE q 5",
            "unknown option '5': a number follows the name of its option",
            "DQ.PAUSE key [IN | OUT | ALL | GROUP group] [FOR ms]",
        ),
        ("DQ.POP q -5", "unknown option '-5': a number follows the name of its option", "DQ.POP key [COUNT count]"),
        (
            "DQ.SCAN q 0 ready",
            "'ready' is not in its place",
            "DQ.SCAN key cursor [STATE <DELAYED | READY | INFLIGHT | DEAD | DONE>] [COUNT count]",
        ),
        (
            "DQ.SCHEDULE q s x EVERY 5 DELAY 5",
            "unknown option 'DELAY': it is a setting of the queue, for DQ.CREATE and DQ.ALTER",
            "DQ.SCHEDULE key id payload <EVERY ms [OFFSET offset-ms] | CRON expression [TZ zone]> [AT unix-ms]",
        ),
        (
            "DQ.ALTER q JITTER 5",
            "'JITTER' is not in its place",
            "DQ.ALTER key [MKQUEUE] [LEASE lease-ms] [RETRIES retries] [BACKOFF base-ms max-ms [JITTER percent]]",
        ),
    ] {
        let reply = c.ask(line);
        let expected = format!("ERR syntax error, {wrong}; the syntax is {syntax}");
        assert!(reply.error().starts_with(&expected), "{line}: {reply:?}");
    }
}

#[test]
fn an_error_touches_no_watcher_and_replicates_nothing() {
    let server = Server::start();
    let mut c = server.client();
    every_state(&mut c, "q");
    let changes = c.info("persistence", "rdb_changes_since_last_save");
    let offset = c.info("replication", "master_repl_offset");
    let mut watcher = server.client();
    watcher.ask("WATCH q").ok();
    for (line, says) in TABLE {
        says.expect(line, &c.ask(line));
    }
    assert_eq!(watcher.multi(&["PING"]), [Reply::Simple("PONG".into())]);
    assert_eq!(c.info("persistence", "rdb_changes_since_last_save"), changes);
    assert_eq!(c.info("replication", "master_repl_offset"), offset);
}

#[test]
fn an_error_is_the_same_if_the_queue_is_missing() {
    let server = Server::start();
    let mut c = server.client();
    for (line, says) in TABLE {
        says.expect(line, &c.ask(line));
    }
    assert_eq!(c.ask("DBSIZE"), Reply::Int(0));
}

#[test]
fn a_key_of_another_type_is_left_alone() {
    in_both_protocols(|c| {
        for make in ["SET q text", "RPUSH q item", "XADD q 1-1 field value"] {
            c.ask("DEL q");
            c.ask(make);
            let dump = c.ask("DUMP q");
            let others = [
                "DQ.POP q",
                "DQ.POP q NOACK COUNT 5",
                "DQ.LEN q",
                "DQ.LEN q dead",
                "DQ.GET q m",
                "DQ.INFO q",
                "DQ.SCHEDULE q m x EVERY 5",
                "DQ.MPUSH q 2 x y",
                "DQ.MPUSH q 1 x IDS m REPLACE",
                "DQ.MPOP 1 q",
                "DQ.MPOP 2 absent q BLOCK 0",
                "DQ.REDRIVE q",
                "DQ.PURGE q",
                "DQ.PURGE q COUNT 1",
                "DQ.CREATE q",
                "DQ.ALTER q",
                "DQ.ALTER q MKQUEUE",
            ];
            for line in SAMPLES.iter().map(|sample| sample.line).chain(others) {
                assert_eq!(c.ask(line).error(), WRONG_TYPE, "{line}");
            }
            assert_eq!(c.ask("DUMP q"), dump);
        }
    });
}

#[test]
fn the_commands_of_other_types_leave_a_queue_alone() {
    let server = Server::start();
    let mut c = server.client();
    every_state(&mut c, "q");
    let digest = c.digest("q");
    for line in ["GET q", "LPUSH q x", "INCR q", "HSET q a b", "XADD q * a b", "ZADD q 1 a", "APPEND q x"] {
        assert_eq!(c.ask(line).error(), WRONG_TYPE, "{line}");
    }
    assert_eq!(c.digest("q"), digest);
}

#[test]
fn without_memory_nothing_comes_in_and_everything_can_go() {
    let server = Server::start();
    let mut c = server.client();
    for n in 0..4 {
        c.push(format!("q x ID m{n}"));
    }
    c.pop("q COUNT 2");
    let (digest, about) = (c.digest("q"), c.about_but_time("q"));
    c.configure("maxmemory", 1);
    for line in [
        "DQ.PUSH q x",
        "DQ.PUSH q x DELAY 5",
        "DQ.PUSH q x ID m0 REPLACE",
        "DQ.PUSH new x",
        "DQ.MPUSH q 1 x",
        "DQ.MPUSH new 2 x y",
        "DQ.SCHEDULE q s x EVERY 5",
        "DQ.SCHEDULE new s x EVERY 5",
        "DQ.BATCH q b THEN x",
        "DQ.BATCH new b THEN x",
    ] {
        assert!(c.ask(line).error().starts_with("OOM "), "{line}");
    }
    assert_eq!((c.digest("q"), c.about_but_time("q")), (digest, about));
    assert_eq!(c.ask("DQ.BATCH q b CANCEL"), Reply::Int(0));
    assert_eq!(c.ask("DQ.RELEASE q nobody"), Reply::Int(0));
    assert_eq!(c.ack("q m0"), 1);
    assert_eq!(c.nack("q m1 DELAY 600000 ERROR full"), "delayed");
    assert_eq!(c.pop_ids("q"), ["m2"]);
    assert!(c.extend("q m2") > 0);
    assert_eq!(c.pop_ids("q NOACK BLOCK 0"), ["m3"]);
    assert_eq!(c.len("q"), 2);
    assert_eq!(c.state("q", "m1"), "delayed");
    assert_eq!(c.reschedule("q m1 DELAY 0"), 1);
    assert_eq!(c.pop_any("1 q").expect("one").1[0].id, "m1");
    assert_eq!(c.nack("q m1 DEAD"), "dead");
    assert_eq!(c.redrive("q DELAY 600000"), 1);
    c.pause("q FOR 5");
    c.pause("q");
    c.resume("q");
    assert_eq!(c.ask("DQ.PROMOTE q"), Reply::Int(1));
    assert_eq!(c.ask("DQ.BURY q m1"), Reply::bulk("ready"));
    assert_eq!(c.redrive("q DELAY 600000"), 1);
    assert_eq!(c.cancel("q m1"), ["delayed"]);
    assert_eq!(c.purge("q"), 1);
    c.configure("maxmemory", 0);
    c.push("q x");
}

#[test]
fn an_error_in_a_transaction_is_its_own() {
    let server = Server::start();
    let mut c = server.client();
    let replies = c.multi(&["DQ.PUSH q x ID a", "DQ.PUSH q x DELAY -1", "DQ.POP q BLOCK -1", "DQ.PUSH q x ID b"]);
    assert_eq!(replies[0], Reply::bulk("a"));
    assert!(replies[1].error().starts_with("ERR DELAY must be"));
    assert!(replies[2].error().starts_with("ERR BLOCK must be"));
    assert_eq!(replies[3], Reply::bulk("b"));
    assert_eq!(c.len("q"), 2);
}

#[test]
fn an_error_shows_the_wrong_word_without_breaking_the_protocol() {
    in_both_protocols(|c| {
        for word in [b"\r\n+INJECTED\r\n".as_slice(), b"\0", b"\xff\xfe", b"%s%n%d", &[b'w'; 100_000]] {
            for args in [
                &[b"DQ.PUSH", b"q".as_slice(), b"x", word],
                &[b"DQ.PUSH", b"q".as_slice(), b"DELAY", word],
                &[b"DQ.POP", b"q".as_slice(), b"COUNT", word],
                &[b"DQ.POP", b"q".as_slice(), b"NOACK", word],
                &[b"DQ.MPUSH", b"q".as_slice(), word, b"x"],
                &[b"DQ.MPOP", word, b"q".as_slice(), b"q"],
                &[b"DQ.PURGE", b"q".as_slice(), b"dead", word],
                &[b"DQ.PEEK", b"q".as_slice(), b"COUNT", word],
                &[b"DQ.ALTER", b"q".as_slice(), b"LEASE", word],
                &[b"DQ.CREATE", b"q".as_slice(), word, word],
            ] {
                let reply = c.cmd(args);
                assert!(reply.error().starts_with("ERR "), "{reply:?}");
                assert!(reply.error().len() < 1_500);
            }
            assert!(c.cmd(&[b"DQ.LEN", b"q".as_slice(), word]).error().starts_with("ERR "));
            assert_eq!(c.ask("PING"), Reply::Simple("PONG".into()));
        }
    });
}
