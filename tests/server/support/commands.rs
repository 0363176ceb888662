//! A call of every command, for tests of what all commands have in common.

/// A call of one command.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// The words of the call. Its only key is `q`.
    pub line: &'static str,
    pub kind: Kind,
}

/// What a command does to a queue, as its flags say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It adds messages, and is refused if the server is out of memory.
    Grows,
    /// It changes or removes messages.
    Changes,
    /// It decides by itself whether it needs memory.
    Configures,
    /// It only reads.
    Reads,
}

impl Sample {
    /// The name of the command, in lower case.
    pub fn name(&self) -> String {
        self.line.split(' ').next().unwrap_or_default().to_lowercase()
    }

    pub fn writes(&self) -> bool {
        self.kind != Kind::Reads
    }
}

const fn sample(kind: Kind, line: &'static str) -> Sample {
    Sample { line, kind }
}

/// A call of every command that clients send. `every_command_has_a_sample` fails if one is missing.
pub const SAMPLES: &[Sample] = &[
    sample(Kind::Grows, "DQ.PUSH q x ID m DELAY 5 REPLACE LATER"),
    sample(Kind::Grows, "DQ.MPUSH q 2 x y IDS m n DELAY 5 REPLACE"),
    sample(Kind::Grows, "DQ.SCHEDULE q m x EVERY 5"),
    sample(Kind::Changes, "DQ.POP q COUNT 5 BLOCK 0"),
    sample(Kind::Changes, "DQ.MPOP 1 q COUNT 5 BLOCK 0"),
    sample(Kind::Changes, "DQ.ACK q m n"),
    sample(Kind::Changes, "DQ.ACKPOP q 2 m n COUNT 5 BLOCK 0"),
    sample(Kind::Changes, "DQ.COMPLETE q m RESULT r RETAIN 5"),
    sample(Kind::Changes, "DQ.NACK q m DELAY 5"),
    sample(Kind::Changes, "DQ.EXTEND q m"),
    sample(Kind::Changes, "DQ.MEXTEND q 2 m n LEASE 5"),
    sample(Kind::Changes, "DQ.CANCEL q m n"),
    sample(Kind::Changes, "DQ.RESCHEDULE q m DELAY 5"),
    sample(Kind::Changes, "DQ.PROMOTE q COUNT 5 UNTIL 8000000000000"),
    sample(Kind::Changes, "DQ.BURY q m ERROR e"),
    sample(Kind::Changes, "DQ.REDRIVE q IDS 2 m n DELAY 5"),
    sample(Kind::Configures, "DQ.BATCH q b THEN x ID m DELAY 5"),
    sample(Kind::Changes, "DQ.RELEASE q w COUNT 5 NOCOUNT"),
    sample(Kind::Changes, "DQ.PURGE q dead ready OLDER 5"),
    sample(Kind::Reads, "DQ.LEN q ready"),
    sample(Kind::Reads, "DQ.GET q m"),
    sample(Kind::Reads, "DQ.PEEK q dead COUNT 5"),
    sample(Kind::Reads, "DQ.SCAN q 0 STATE dead COUNT 5"),
    sample(Kind::Reads, "DQ.AWAIT q m BLOCK 0"),
    sample(Kind::Reads, "DQ.GROUPS q 0 COUNT 5"),
    sample(Kind::Reads, "DQ.BATCHINFO q b"),
    sample(Kind::Reads, "DQ.CONSUMERS q 0 COUNT 5"),
    sample(Kind::Reads, "DQ.INFO q"),
    sample(Kind::Reads, "DQ.STATS q"),
    sample(Kind::Configures, "DQ.CREATE q LEASE 5"),
    sample(Kind::Configures, "DQ.ALTER q LEASE 5"),
    sample(Kind::Changes, "DQ.PAUSE q ALL FOR 5"),
    sample(Kind::Changes, "DQ.RESUME q"),
];

/// A call of every command that writes.
pub fn writes() -> impl Iterator<Item = &'static str> {
    SAMPLES.iter().filter(|sample| sample.writes()).map(|sample| sample.line)
}
