//! A cluster of servers on this machine.

use super::client::Client;
use super::clock::Clock;
use super::reply::Reply;
use super::roaming::Roamer;
use super::server::Server;
use super::wait::eventually;

/// The number of slots of every cluster.
pub const SLOTS: usize = 16_384;

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
        cluster.nodes = (0..masters).map(|n| cluster.node(clocks.get(n))).collect();
        unite(&cluster.all(), &[]);
        cluster
    }

    /// Adds a replica of a master. Returns its number.
    pub fn add_replica(&mut self, master: usize) -> usize {
        let replica = self.node(None);
        introduce(&replica, &self.all());
        self.nodes.push(replica);
        let (nodes, number) = (self.all(), self.nodes.len() - 1);
        until_agreed(&nodes);
        attach(&[nodes[number]], nodes[master], &nodes);
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
        id(&self.nodes[number])
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

    fn all(&self) -> Vec<&Server> {
        self.nodes.iter().collect()
    }

    fn node(&self, clock: Option<&Clock>) -> Server {
        let timeout = self.node_timeout_ms.to_string();
        let args = [&node_args(&timeout)[..], &self.args].concat();
        clock.map_or_else(|| Server::with(&args), |clock| Server::with_clock(clock, &args))
    }
}

/// The arguments of a node that is marked as failed only after `timeout_ms` of silence.
pub fn node_args(timeout_ms: &str) -> [&str; 8] {
    // A replica may take over however long it was disconnected, and slots without a node affect only their own keys.
    let [validity, coverage] = ["--cluster-replica-validity-factor", "--cluster-require-full-coverage"];
    ["--cluster-enabled", "yes", "--cluster-node-timeout", timeout_ms, validity, "0", coverage, "no"]
}

/// Makes a cluster of masters that share the slots evenly, in this order, and of nodes without slots.
pub fn unite(masters: &[&Server], others: &[&Server]) {
    for (n, node) in masters.iter().enumerate() {
        let mut c = node.client();
        // This is done before the nodes meet, so that their first messages carry it and they do not have to resolve a
        // conflict of epochs.
        c.ask(format!("CLUSTER SET-CONFIG-EPOCH {}", n + 1)).ok();
        let (first, end) = (n * SLOTS / masters.len(), (n + 1) * SLOTS / masters.len());
        c.ask(format!("CLUSTER ADDSLOTSRANGE {first} {}", end - 1)).ok();
    }
    let nodes = [masters, others].concat();
    (1..nodes.len()).for_each(|n| introduce(nodes[n], &nodes[..n]));
    until_agreed(&nodes);
}

/// Makes nodes of a cluster replicas of another one.
pub fn attach(replicas: &[&Server], master: &Server, nodes: &[&Server]) {
    let of_master = id(master);
    let following = format!("slave {of_master}");
    for replica in replicas {
        replica.client().ask(format!("CLUSTER REPLICATE {of_master}")).ok();
    }
    for replica in replicas {
        let (mut r, own) = (replica.client(), id(replica));
        eventually("the replica's link is up", || r.info("replication", "master_link_status") == "up");
        // A replica that has no link of the bus to its master refuses a planned failover.
        let reached = |line: &str| line.starts_with(&of_master) && line.split(' ').nth(7) == Some("connected");
        eventually("the replica reaches its master", || r.ask("CLUSTER NODES").text().lines().any(reached));
        for node in nodes {
            let mut c = node.client();
            let knows = |line: &str| line.starts_with(&own) && line.contains(&following);
            eventually("all know the replica", || c.ask("CLUSTER NODES").text().lines().any(knows));
        }
    }
}

fn id(node: &Server) -> String {
    node.client().ask("CLUSTER MYID").text()
}

/// Lets a node meet each of the others, because what they tell of each other takes seconds.
fn introduce(node: &Server, others: &[&Server]) {
    let mut c = node.client();
    let mut number = |name: &str| c.ask(format!("CONFIG GET {name}")).items()[1].text();
    // Others may reach it by proxies.
    let (port, bus) = match number("cluster-announce-port") {
        none if none == "0" => (node.port().to_string(), number("cluster-port")),
        port => (port, number("cluster-announce-bus-port")),
    };
    for other in others {
        other.client().ask(format!("CLUSTER MEET 127.0.0.1 {port} {bus}")).ok();
    }
}

/// Waits until every node knows every other one and reports the cluster as ok.
fn until_agreed(nodes: &[&Server]) {
    let known = format!("cluster_known_nodes:{}\r\n", nodes.len());
    for node in nodes {
        let mut c = node.client();
        eventually("the cluster is up", || {
            let info = c.ask("CLUSTER INFO").text();
            ["cluster_state:ok", "cluster_slots_ok:16384\r\n", &known].iter().all(|line| info.contains(line))
        });
    }
}
