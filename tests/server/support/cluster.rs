//! A cluster of servers on this machine.

use super::client::Client;
use super::clock::Clock;
use super::reply::Reply;
use super::roaming::Roamer;
use super::server::Server;
use super::wait::eventually;

const SLOTS: usize = 16_384;

/// Masters that share the slots evenly, and their replicas.
pub struct Cluster {
    /// The nodes: first the masters in the order of their slots, then the replicas.
    pub nodes: Vec<Server>,
    masters: usize,
    node_timeout_ms: u32,
    args: Vec<&'static str>,
}

impl Cluster {
    /// Starts a cluster of masters. A node is marked as failed only after `node_timeout_ms` of silence.
    pub fn of(masters: usize, node_timeout_ms: u32) -> Cluster {
        Cluster::with(masters, node_timeout_ms, &[], &[])
    }

    /// The same as `of`. The first nodes use the given clocks, and all nodes are started with these arguments too.
    pub fn with(masters: usize, node_timeout_ms: u32, clocks: &[Clock], args: &[&'static str]) -> Cluster {
        let mut cluster = Cluster { nodes: Vec::new(), masters, node_timeout_ms, args: args.to_vec() };
        for n in 0..masters {
            let node = cluster.node(clocks.get(n));
            let mut c = node.client();
            // This is done before the nodes meet, so that their first messages carry it and they do not have to resolve
            // a conflict of epochs.
            c.ask(format!("CLUSTER SET-CONFIG-EPOCH {}", n + 1)).ok();
            let (first, end) = (n * SLOTS / masters, (n + 1) * SLOTS / masters);
            c.ask(format!("CLUSTER ADDSLOTSRANGE {first} {}", end - 1)).ok();
            cluster.nodes.push(node);
        }
        for node in &cluster.nodes[1..] {
            cluster.introduce(node);
        }
        cluster.until_agreed();
        cluster
    }

    /// Adds a replica of a master. Returns its number.
    pub fn add_replica(&mut self, master: usize) -> usize {
        let replica = self.node(None);
        self.introduce(&replica);
        self.nodes.push(replica);
        let number = self.nodes.len() - 1;
        let (mut r, id) = (self.client(number), self.id(master));
        eventually("it knows its master", || r.ask("CLUSTER NODES").text().contains(&id));
        self.until_agreed();
        r.ask(format!("CLUSTER REPLICATE {id}")).ok();
        eventually("the replica's link is up", || r.info("replication", "master_link_status") == "up");
        for other in 0..self.nodes.len() {
            let mut c = self.client(other);
            let following = format!("slave {id}");
            eventually("all know the replica", || c.ask("CLUSTER NODES").text().contains(&following));
        }
        number
    }

    /// A connection to a node.
    pub fn client(&self, number: usize) -> Client {
        self.nodes[number].client()
    }

    /// A client that follows the keys from node to node.
    pub fn roamer(&self) -> Roamer {
        Roamer::among(&self.nodes.iter().map(Server::port).collect::<Vec<_>>())
    }

    /// The id by which the nodes know each other.
    pub fn id(&self, number: usize) -> String {
        self.client(number).ask("CLUSTER MYID").text()
    }

    /// A hash tag in the slots that a master had at first, and its slot.
    pub fn tag_of(&self, master: usize) -> (String, usize) {
        let mut c = self.client(0);
        let mut tags = (0..).map(|n| {
            let slot = c.ask(format!("CLUSTER KEYSLOT {{t{n}}}")).int();
            (format!("{{t{n}}}"), usize::try_from(slot).expect("a slot"))
        });
        let range = master * SLOTS / self.masters..(master + 1) * SLOTS / self.masters;
        tags.find(|(_, slot)| range.contains(slot)).expect("there are many")
    }

    /// Checks that a node redirected its client to another node.
    #[track_caller]
    pub fn expect_moved(&self, reply: &Reply, slot: usize, number: usize) {
        assert_eq!(reply.error(), format!("MOVED {slot} 127.0.0.1:{}", self.nodes[number].port()));
    }

    fn node(&self, clock: Option<&Clock>) -> Server {
        let timeout = self.node_timeout_ms.to_string();
        let args = ["--cluster-enabled", "yes", "--cluster-node-timeout", &timeout];
        // A replica may take over however long it was disconnected, and slots without a node affect only their own
        // keys.
        let more = ["--cluster-replica-validity-factor", "0", "--cluster-require-full-coverage", "no"];
        let args = [&args, &more, &self.args[..]].concat();
        clock.map_or_else(|| Server::with(&args), |clock| Server::with_clock(clock, &args))
    }

    fn introduce(&self, node: &Server) {
        let bus = node.client().ask("CONFIG GET cluster-port").items()[1].text();
        self.client(0).ask(format!("CLUSTER MEET 127.0.0.1 {} {bus}", node.port())).ok();
    }

    /// Waits until every node knows every other one and reports the cluster as ok.
    fn until_agreed(&self) {
        let known = format!("cluster_known_nodes:{}\r\n", self.nodes.len());
        for node in &self.nodes {
            let mut c = node.client();
            eventually("the cluster is up", || {
                let info = c.ask("CLUSTER INFO").text();
                ["cluster_state:ok", "cluster_slots_ok:16384\r\n", &known].iter().all(|line| info.contains(line))
            });
        }
    }
}
