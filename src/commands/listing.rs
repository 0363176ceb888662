//! What `DQ.CONSUMERS` and `DQ.GROUPS` have in common: the pages of a listing, with a cursor.

use super::{options, word, Arg, Call, Error, Options, Session};
use dq_queue::time::UnixMs;
use dq_queue::Queue;

options! {
    /// The options of a listing.
    pub enum ListingOption {
        Count => Arg::token_int(c"COUNT", c"count"),
    }
}

/// How many entries a call looks at if `COUNT` is absent.
const COUNT: usize = 10;

/// Where a page begins, and how many entries it looks at.
pub struct Page {
    /// The cursor that the last page returned; `None` for the first page.
    pub cursor: Option<u64>,
    /// How many entries to look at.
    pub count: usize,
}

/// Replies with one page. `reply_entries` sends the entries as an array, after the cursor has been passed to its last
/// argument.
pub fn reply(
    call: &mut Call<'_>,
    reply_entries: impl FnOnce(&Queue, UnixMs, &Page, &dyn Fn(Option<u64>)),
) -> Result<(), Error> {
    let session = Session::begin(call)?;
    let Session { ctx, now, .. } = session;
    let page = parse(call)?;
    let begin = |next: Option<u64>| {
        ctx.array(2);
        ctx.bulk(next.unwrap_or(0).to_string().as_bytes());
    };
    if session.look_caught_up(|held| reply_entries(&held.queue, now, &page, &begin))?.is_none() {
        begin(None);
        ctx.array(0);
    }
    Ok(())
}

/// Parses the cursor and the options.
pub fn parse(call: &mut Call<'_>) -> Result<Page, Error> {
    let (cursor, mut count) = (options::cursor(word(call))?, COUNT);
    let mut options = Options::new(&mut call.args);
    while let Some(option) = options.next()? {
        match option {
            ListingOption::Count => count = options.count()?,
        }
    }
    Ok(Page { cursor, count })
}
