//! Queues whose dead messages `DEADFORWARD` moves away: when one died shows only where they are, or in a second look.

use super::finding::{About, Findings, Subject, DYING};
use super::queues::number;
use crate::advice::quoted;
use crate::condition::moves_dead;
use crate::dead::{target, target_in_words, Known, Newest};
use crate::name::shown;
use crate::reply::Fields;
use crate::trouble::Trouble;
use crate::wording::messages;
use dq_client::{cmd, Client, Error, Resend};

const UNDELIVERED: &str = "they are not delivered again";
const EXPIRED: &str =
    "look with dqctl stats QUEUE how late they are delivered; start consumers, or let them live longer (--ttl)";

/// A queue whose messages died at a time that is not known.
pub struct Moved {
    died: i64,
    trouble: Trouble,
}

impl Moved {
    /// `None` if no message was moved.
    pub fn of(info: &Fields, trouble: Trouble) -> Option<Moved> {
        let died = number(info, "died");
        (died > 0 && moves_dead(info)).then_some(Moved { died, trouble })
    }
}

/// Reports that messages die, of what most of them did, and where they are. `moved` is what is known of those that were moved.
pub fn die(client: &Client, name: &[u8], info: &Fields, moved: &str, about: &mut About) {
    let Some(target) = target_in_words(info).filter(|_| moves_dead(info)) else {
        let known = Newest::read(client, name, info).known(number(info, "died"), (0, false));
        let lately = known.as_ref().and_then(Known::words).map_or_else(
            || "messages have died in the last 10 minutes".to_owned(),
            |words| format!("messages have died: {words}"),
        );
        let what = format!("{lately}; it has {} dead", number(info, "dead"));
        if known.is_some_and(|known| known.have_expired()) {
            let why = "they were not completed within their TTL after they were due";
            about.warning(DYING, what, why, EXPIRED);
        } else {
            about.warning(DYING, what, UNDELIVERED, &advice(info));
        }
        return;
    };
    let what = format!("messages have died in the last 10 minutes, and are moved to {target}{moved}");
    about.warning(DYING, what, UNDELIVERED, &advice(info));
}

fn advice(info: &Fields) -> String {
    let Some((kind, name)) = target(info).filter(|_| moves_dead(info)) else {
        return "look with dqctl dead QUEUE --by-error".to_owned();
    };
    let name = quoted(&shown(name));
    match kind {
        "QUEUE" => format!("look with dqctl dead {name} --letters --by-error"),
        "STREAM" => format!("look with redis-cli XREVRANGE {name} + - COUNT 10"),
        _ => format!("look with redis-cli LRANGE {name} 0 9"),
    }
}

/// Whether more messages have died since; if not, what two looks do not show.
pub fn check_again(client: &Client, name: &[u8], before: &Moved, findings: &mut Findings) -> Result<(), Error> {
    let about = &mut findings.about(Subject::Queue(name.to_vec()));
    about.trouble = before.trouble;
    let reply = client.call(cmd("DQ.INFO").arg(name), Resend::Harmless)?;
    let Ok(Some(info)) = Fields::read(reply) else { return Ok(()) };
    let died = number(&info, "died");
    if died > before.died {
        die(client, name, &info, "", about);
        return Ok(());
    }
    let died = messages(u64::try_from(died).unwrap_or(0));
    let what = format!(
        "{died} died since it was created; its dead ones are moved to {}",
        target_in_words(&info).unwrap_or_default()
    );
    let why = "whether any died lately does not show in seconds";
    about.note("moved", what, why, &format!("{}; dqctl ls --watch and top show whether messages die", advice(&info)));
    Ok(())
}
