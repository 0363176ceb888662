//! A reply as it is on the wire: the two nulls of RESP2 and the null of RESP3 are different values.

/// Any reply of RESP2 or RESP3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Simple(String),
    Error(String),
    Int(i64),
    Bulk(Vec<u8>),
    /// RESP2: `$-1`
    NullBulk,
    /// RESP2: `*-1`
    NullArray,
    /// RESP3: `_`
    Null,
    Array(Vec<Reply>),
    /// RESP3: `%`, in the order of the wire
    Map(Vec<(Reply, Reply)>),
    /// RESP3: `~`
    Set(Vec<Reply>),
    /// RESP3: `>`
    Push(Vec<Reply>),
    /// RESP3: `=`, without the three letters of its format
    Verbatim(Vec<u8>),
    /// RESP3: `#`
    Bool(bool),
    /// RESP3: `,` as text
    Double(String),
}

impl Reply {
    /// A bulk string.
    pub fn bulk(bytes: impl AsRef<[u8]>) -> Reply {
        Reply::Bulk(bytes.as_ref().to_vec())
    }

    /// Whether the reply is one of the nulls.
    pub fn is_null(&self) -> bool {
        matches!(self, Reply::NullBulk | Reply::NullArray | Reply::Null)
    }

    #[track_caller]
    pub fn int(&self) -> i64 {
        match self {
            Reply::Int(n) => *n,
            other => panic!("expected an integer, got {other:?}"),
        }
    }

    #[track_caller]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Reply::Bulk(bytes) | Reply::Verbatim(bytes) => bytes,
            Reply::Simple(text) => text.as_bytes(),
            other => panic!("expected a string, got {other:?}"),
        }
    }

    #[track_caller]
    pub fn text(&self) -> String {
        String::from_utf8(self.bytes().to_vec()).expect("text")
    }

    #[track_caller]
    pub fn items(&self) -> &[Reply] {
        match self {
            Reply::Array(items) | Reply::Set(items) | Reply::Push(items) => items,
            other => panic!("expected an array, got {other:?}"),
        }
    }

    /// Whether the reply is an error.
    pub fn is_error(&self) -> bool {
        matches!(self, Reply::Error(_))
    }

    #[track_caller]
    pub fn error(&self) -> &str {
        match self {
            Reply::Error(text) => text,
            other => panic!("expected an error, got {other:?}"),
        }
    }

    #[track_caller]
    pub fn ok(&self) {
        assert_eq!(self, &Reply::Simple("OK".into()));
    }

    /// Returns the fields of a map, or in RESP2 of the flat array that stands for one.
    #[track_caller]
    pub fn fields(&self) -> Fields {
        let pairs = match self {
            Reply::Map(pairs) => pairs.clone(),
            Reply::Array(flat) => {
                assert!(flat.len() % 2 == 0, "a flat map of odd length: {flat:?}");
                flat.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
            }
            other => panic!("expected a map, got {other:?}"),
        };
        Fields(pairs.into_iter().map(|(name, value)| (name.text(), value)).collect())
    }
}

/// The fields of a map reply, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fields(pub Vec<(String, Reply)>);

impl Fields {
    #[track_caller]
    pub fn get(&self, name: &str) -> &Reply {
        match self.0.iter().find(|(field, _)| field == name) {
            Some((_, value)) => value,
            None => panic!("no field {name} in {:?}", self.0),
        }
    }

    #[track_caller]
    pub fn int(&self, name: &str) -> i64 {
        self.get(name).int()
    }

    #[track_caller]
    pub fn text(&self, name: &str) -> String {
        self.get(name).text()
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(field, _)| field == name)
    }

    /// The names of all fields, sorted.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.0.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names
    }

    /// The same map without these fields.
    pub fn without(mut self, names: &[&str]) -> Fields {
        self.0.retain(|(name, _)| !names.contains(&name.as_str()));
        self
    }
}
