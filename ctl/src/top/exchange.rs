//! What the screen and the thread that reads the server send each other.

use super::action::Action;
use super::entries::{Entries, Entry, Only};
use super::findings::Group;
use super::found::{Found, Search};
use super::listing::Listing;
use super::recurring::{About, Recurring};
use crate::dead::Newest;
use crate::reply::Fields;
use crate::row::Snapshot;

/// What the screen shows, and so has to be read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wanted {
    /// The names of the queues on the screen.
    pub queues: Vec<Vec<u8>>,
    /// The messages of a queue in a state, at least this many.
    pub messages: Option<(Vec<u8>, &'static str, usize)>,
    /// Only some of these messages, of a cause or a batch among the first ones.
    pub only: Option<Only>,
    /// A queue, and which of its lists.
    pub listing: Option<(Vec<u8>, Listing)>,
    /// Of groups, only those with this in their names.
    pub sought: String,
    /// A queue of which all is shown.
    pub details: Option<Vec<u8>>,
    /// A queue and the id of one of its messages.
    pub message: Option<(Vec<u8>, Vec<u8>)>,
    /// Messages among which schedules are counted.
    pub recurring: Option<About>,
}

/// What the screen asks for.
pub enum Ask {
    Show(Wanted),
    Do(Action),
    /// Looks for messages in all queues.
    Find(Search),
    /// Looks for what `dqctl doctor` finds.
    Examine,
}

/// What was read.
pub enum Update {
    /// All queues there are, and why those of some servers of a cluster are missing.
    Names(Vec<Vec<u8>>, Option<String>),
    /// Queues that were read; `None`: the queue no longer exists.
    Queues(Vec<(Vec<u8>, Option<Snapshot>)>),
    /// How many queues the user may not read.
    Denied(usize),
    Details(Vec<u8>, Vec<(String, String)>),
    Messages(Vec<u8>, &'static str, Vec<Fields>),
    Message(Vec<u8>, Vec<u8>, Option<Fields>),
    Found(Found),
    /// The consumer that has held a message of a queue for longest, if it has a name and that is long.
    Holder(Vec<u8>, Option<Entry>),
    /// The causes of the newest dead messages of a queue.
    Died(Vec<u8>, Newest),
    /// How many groups of a queue are paused.
    PausedGroups(Vec<u8>, usize),
    /// How many schedules are among messages that a question is about.
    Recurring(About, Recurring),
    /// What `dqctl doctor` finds.
    Findings(Result<Vec<Group>, String>),
    Listing(Vec<u8>, Listing, Result<Entries, String>),
    /// A part of something that takes long was read or changed.
    Answered,
    /// The outcome or the progress of an action.
    Said(Result<String, String>),
    /// One of the queues that are changed together was changed.
    Changed(Vec<u8>),
    /// The server cannot be read.
    Lost(String),
}
