//! A minimal client: it sends exactly what it is given and returns the reply as it is on the wire.

use super::reply::Reply;
use super::wait::patience;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// The protocol that a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Resp2,
    Resp3,
}

/// One connection to a server.
pub struct Client {
    stream: BufReader<TcpStream>,
    protocol: Protocol,
}

impl Client {
    /// Connects to the server that listens on a port of this machine.
    pub fn connect(port: u16, protocol: Protocol) -> io::Result<Client> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience()))?;
        stream.set_write_timeout(Some(patience()))?;
        let mut client = Client { stream: BufReader::new(stream), protocol };
        if protocol == Protocol::Resp3 {
            client.try_ask("HELLO 3")?;
        }
        Ok(client)
    }

    /// Sends a command and waits for its reply. Words are separated by spaces, and `""` is the empty word.
    #[track_caller]
    pub fn ask(&mut self, line: impl AsRef<str>) -> Reply {
        let line = line.as_ref();
        self.try_ask(line).unwrap_or_else(|error| panic!("no reply to {line}: {error}"))
    }

    /// The same as `ask` for connections that may break.
    pub fn try_ask(&mut self, line: impl AsRef<str>) -> io::Result<Reply> {
        self.try_send(&words(line.as_ref()))?;
        self.try_receive()
    }

    /// Sends a command whose words are arbitrary bytes.
    #[track_caller]
    pub fn cmd<A: AsRef<[u8]>>(&mut self, args: &[A]) -> Reply {
        self.try_send(args).expect("sent");
        self.receive()
    }

    /// Sends a command without waiting for its reply.
    #[track_caller]
    pub fn send(&mut self, line: impl AsRef<str>) {
        self.try_send(&words(line.as_ref())).expect("sent");
    }

    /// Reads the next reply.
    #[track_caller]
    pub fn receive(&mut self) -> Reply {
        self.try_receive().unwrap_or_else(|error| panic!("no reply: {error}"))
    }

    /// Pipelines the commands, in portions that fit the socket buffers, and returns their replies.
    #[track_caller]
    pub fn pipeline<L: AsRef<str>>(&mut self, lines: impl IntoIterator<Item = L>) -> Vec<Reply> {
        const PORTION: usize = 500;
        let lines: Vec<L> = lines.into_iter().collect();
        let mut replies = Vec::with_capacity(lines.len());
        for portion in lines.chunks(PORTION) {
            let bytes: Vec<u8> = portion.iter().flat_map(|line| encode(&words(line.as_ref()))).collect();
            self.stream.get_mut().write_all(&bytes).expect("sent");
            replies.extend((0..portion.len()).map(|_| self.receive()));
        }
        replies
    }

    /// Sends commands that succeed in one write, so that the server executes each right behind the one before, however
    /// busy the machine is: before a message falls due, for instance.
    #[track_caller]
    pub fn at_once<L: AsRef<str>>(&mut self, lines: impl IntoIterator<Item = L>) -> Vec<Reply> {
        let replies = self.pipeline(lines);
        assert!(!replies.iter().any(Reply::is_error), "{replies:?}");
        replies
    }

    /// Pipelines a few commands. If the connection breaks, there are fewer replies than commands.
    pub fn replies_to<L: AsRef<str>>(&mut self, lines: &[L]) -> Vec<Reply> {
        let bytes: Vec<u8> = lines.iter().flat_map(|line| encode(&words(line.as_ref()))).collect();
        let mut replies = Vec::new();
        // Even if sending failed, there may be replies to read.
        let _ = self.send_raw(&bytes);
        while let Some(reply) = (replies.len() < lines.len()).then(|| self.try_receive().ok()).flatten() {
            replies.push(reply);
        }
        replies
    }

    /// Sends all commands within MULTI and EXEC. Returns their replies.
    #[track_caller]
    pub fn multi(&mut self, lines: &[&str]) -> Vec<Reply> {
        self.ask("MULTI").ok();
        for line in lines {
            assert_eq!(self.ask(line), Reply::Simple("QUEUED".into()), "{line}");
        }
        self.ask("EXEC").items().to_vec()
    }

    /// The null of this protocol for a reply that is otherwise a string.
    pub fn null(&self) -> Reply {
        match self.protocol {
            Protocol::Resp2 => Reply::NullBulk,
            Protocol::Resp3 => Reply::Null,
        }
    }

    /// The null of this protocol for a reply that is otherwise an array or a map.
    pub fn null_array(&self) -> Reply {
        match self.protocol {
            Protocol::Resp2 => Reply::NullArray,
            Protocol::Resp3 => Reply::Null,
        }
    }

    /// The protocol of this connection.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Sends bytes without any change.
    pub fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    fn try_send<A: AsRef<[u8]>>(&mut self, args: &[A]) -> io::Result<()> {
        self.send_raw(&encode(args))
    }

    fn try_receive(&mut self) -> io::Result<Reply> {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line)?;
        let text = line.strip_suffix(b"\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
        let (kind, rest) = text.split_first().ok_or_else(|| bad("an empty line"))?;
        let rest = String::from_utf8_lossy(rest).into_owned();
        Ok(match kind {
            b'+' => Reply::Simple(rest),
            b'-' => Reply::Error(rest),
            b':' => Reply::Int(number(&rest)?),
            b'$' if rest == "-1" => Reply::NullBulk,
            b'$' => Reply::Bulk(self.body(&rest)?),
            b'=' => Reply::Verbatim(self.body(&rest)?.split_off(4)),
            b'*' if rest == "-1" => Reply::NullArray,
            b'*' => Reply::Array(self.list(number(&rest)?)?),
            b'~' => Reply::Set(self.list(number(&rest)?)?),
            b'>' => Reply::Push(self.list(number(&rest)?)?),
            b'%' => {
                let flat = self.list(number(&rest)? * 2)?;
                Reply::Map(flat.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect())
            }
            b'_' => Reply::Null,
            b'#' => Reply::Bool(rest == "t"),
            b',' => Reply::Double(rest),
            other => return Err(bad(&format!("type {:?} of a reply", char::from(*other)))),
        })
    }

    fn list(&mut self, len: i64) -> io::Result<Vec<Reply>> {
        (0..len).map(|_| self.try_receive()).collect()
    }

    fn body(&mut self, len: &str) -> io::Result<Vec<u8>> {
        let len = usize::try_from(number(len)?).map_err(|_| bad("a length below 0"))?;
        let mut body = vec![0; len + 2];
        self.stream.read_exact(&mut body)?;
        body.truncate(len);
        Ok(body)
    }
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().map(|word| if word == "\"\"" { "" } else { word }).collect()
}

/// Encodes a command as it is on the wire and in an AOF.
pub fn encode<A: AsRef<[u8]>>(args: &[A]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        bytes.extend_from_slice(format!("${}\r\n", arg.as_ref().len()).as_bytes());
        bytes.extend_from_slice(arg.as_ref());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

fn number(text: &str) -> io::Result<i64> {
    text.parse().map_err(|_| bad(&format!("a number: {text}")))
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}
