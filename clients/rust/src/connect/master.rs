//! The master that sentinels have named last, and what ends with the former one.

use super::url::Address;
use crate::connection_error::ConnectionError;
use crate::error::Error;
use crate::sync::lock;
use std::sync::Mutex;
use tokio_util::sync::CancellationToken;

/// The master as sentinels have named it.
#[derive(Default)]
pub(super) struct Master(Mutex<State>);

#[derive(Default)]
struct State {
    /// The server that was named last.
    named: Option<Address>,
    /// Whether that is still to be asked, because the server has failed since.
    is_doubted: bool,
    /// Cancelled when another server is named, which ends the connections to the former.
    retired: CancellationToken,
}

impl Master {
    /// The present one; `None` if sentinels are to be asked.
    pub fn known(&self) -> Option<Address> {
        let state = lock(&self.0);
        state.named.clone().filter(|_| !state.is_doubted)
    }

    /// A sentinel has announced that this is the master. Connections to another one are given up: it may still accept
    /// writes, which would be lost. Returns whether another one was named before.
    pub fn switch(&self, master: Address) -> bool {
        lock(&self.0).switch(master)
    }

    /// A sentinel that was asked has answered this. What was heard meanwhile is newer. Returns the master, and whether
    /// another one was named before.
    pub fn accept_answer(&self, answer: Address) -> (Address, bool) {
        let mut state = lock(&self.0);
        match state.named.clone().filter(|_| !state.is_doubted) {
            Some(heard) => (heard, false),
            None => (answer.clone(), state.switch(answer)),
        }
    }

    /// The server has failed. If it is the master, sentinels are asked before the next command.
    pub fn doubt(&self, address: &Address) {
        let mut state = lock(&self.0);
        if state.named.as_ref() == Some(address) {
            state.is_doubted = true;
        }
    }

    /// Ends when sentinels have named another master than the present one.
    pub fn retired(&self) -> CancellationToken {
        lock(&self.0).retired.clone()
    }

    /// What ends a new connection to this server. An error if sentinels have named another one since it was looked up.
    pub fn until_retired(&self, address: &Address) -> Result<CancellationToken, Error> {
        let state = lock(&self.0);
        match &state.named {
            Some(master) if master != address && !state.is_doubted => {
                Err(Error::Connect(ConnectionError::not_master(address)))
            }
            Some(_) | None => Ok(state.retired.clone()),
        }
    }
}

impl State {
    fn switch(&mut self, master: Address) -> bool {
        self.is_doubted = false;
        let before = self.named.replace(master);
        let is_another = before.is_some() && before != self.named;
        if is_another {
            std::mem::take(&mut self.retired).cancel();
        }
        is_another
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests {
    use super::{Address, Master};

    fn address(port: u16) -> Address {
        Address::Tcp("127.0.0.1".to_owned(), port)
    }

    #[test]
    fn a_new_master_ends_what_waits_at_the_former_one_however_it_is_learnt() {
        let (former, present) = (address(1), address(2));
        for is_asked in [true, false] {
            let master = Master::default();
            assert_eq!(master.accept_answer(former.clone()), (former.clone(), false));
            let blocked = master.until_retired(&former).unwrap();
            // Another connection to it has failed, so the sentinels are asked before they announce it.
            master.doubt(&former);
            assert_eq!(master.known(), None);
            let is_another = match is_asked {
                true => master.accept_answer(present.clone()).1,
                false => master.switch(present.clone()),
            };
            assert!(is_another && blocked.is_cancelled());
            assert!(!master.switch(present.clone()), "it is known already");
            assert!(master.until_retired(&former).is_err());
        }
    }

    #[test]
    fn a_master_that_failed_and_is_named_again_keeps_its_connections() {
        let master = Master::default();
        master.switch(address(1));
        let blocked = master.retired();
        master.doubt(&address(1));
        assert_eq!(master.accept_answer(address(1)), (address(1), false));
        assert!(!blocked.is_cancelled());
    }

    #[test]
    fn what_was_heard_is_newer_than_an_answer() {
        let master = Master::default();
        master.switch(address(1));
        master.doubt(&address(1));
        master.switch(address(2));
        assert_eq!(master.accept_answer(address(1)), (address(2), false));
        master.doubt(&address(1));
        assert_eq!(master.known(), Some(address(2)));
    }
}
