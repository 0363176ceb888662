//! A cluster of real servers.

use super::server::Server;
use super::wait::eventually;
use dq_client::blocking::Client;
use dq_client::Value;

const SLOTS: usize = 16384;

pub struct Cluster {
    pub nodes: Vec<Server>,
}

impl Cluster {
    /// Masters that share the slots in equal parts.
    pub fn of(masters: usize) -> Cluster {
        let mut cluster = Cluster { nodes: (0..masters).map(|_| node()).collect() };
        for (number, node) in cluster.nodes.iter().enumerate() {
            let (first, last) = (number * SLOTS / masters, (number + 1) * SLOTS / masters - 1);
            node.ask(&["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()]);
            node.ask(&["CLUSTER", "SET-CONFIG-EPOCH", &(number + 1).to_string()]);
        }
        (1..masters).for_each(|number| cluster.introduce(number));
        cluster.until_agreed();
        cluster.nodes.shrink_to_fit();
        cluster
    }

    /// Adds a replica of a master. Returns its number.
    pub fn add_replica(&mut self, master: usize) -> usize {
        let number = self.nodes.len();
        self.nodes.push(node());
        self.introduce(number);
        self.until_agreed();
        let id = self.id(master);
        eventually("it knows its master", || self.nodes[number].try_ask(&["CLUSTER", "REPLICATE", &id]).is_ok());
        eventually("the replica follows", || self.nodes[number].info("replication", "master_link_status") == "up");
        number
    }

    pub fn client(&self) -> Client {
        let hosts: Vec<String> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
        Client::open(&format!("redis+cluster://{}", hosts.join(","))).expect("a client")
    }

    pub fn id(&self, number: usize) -> String {
        self.nodes[number].text(&["CLUSTER", "MYID"])
    }

    pub fn slot_of(&self, key: &str) -> usize {
        self.nodes[0].text(&["CLUSTER", "KEYSLOT", key]).parse().expect("a slot")
    }

    /// The master that has a slot at first.
    pub fn first_owner(masters: usize, slot: usize) -> usize {
        (0..masters).rev().find(|number| number * SLOTS / masters <= slot).expect("an owner")
    }

    /// Moves a slot with its keys, as `redis-cli --cluster reshard` does.
    pub fn reshard(&self, slot: usize, from: usize, to: usize) {
        let (slot, source, target) = (slot.to_string(), self.id(from), self.id(to));
        self.nodes[to].ask(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &source]);
        self.nodes[from].ask(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &target]);
        let port = self.nodes[to].port().to_string();
        loop {
            let keys = match self.nodes[from].ask(&["CLUSTER", "GETKEYSINSLOT", &slot, "100"]) {
                Value::Array(keys) => keys,
                other => panic!("{other:?}"),
            };
            if keys.is_empty() {
                break;
            }
            for key in keys {
                let Value::BulkString(key) = key else { panic!("{key:?}") };
                let key = String::from_utf8(key).expect("a key");
                self.nodes[from].ask(&["MIGRATE", "127.0.0.1", &port, &key, "0", "30000"]);
            }
        }
        for node in [to, from].into_iter().chain(0..self.nodes.len()) {
            let _ = self.nodes[node].try_ask(&["CLUSTER", "SETSLOT", &slot, "NODE", &target]);
        }
    }

    fn introduce(&self, number: usize) {
        let node = &self.nodes[number];
        let bus = match node.ask(&["CONFIG", "GET", "cluster-port"]) {
            Value::Map(pairs) => pairs.into_iter().next().map(|(_, port)| port),
            other => panic!("{other:?}"),
        };
        let Some(Value::BulkString(bus)) = bus else { panic!("no port") };
        let bus = String::from_utf8(bus).expect("a port");
        self.nodes[0].ask(&["CLUSTER", "MEET", "127.0.0.1", &node.port().to_string(), &bus]);
    }

    fn until_agreed(&self) {
        let known = format!("cluster_known_nodes:{}\r\n", self.nodes.len());
        for node in &self.nodes {
            eventually("the cluster is up", || {
                let info = node.text(&["CLUSTER", "INFO"]);
                ["cluster_state:ok", "cluster_slots_ok:16384\r\n", &known].iter().all(|line| info.contains(line))
            });
        }
    }
}

fn node() -> Server {
    Server::with(&[
        "--cluster-enabled",
        "yes",
        "--cluster-node-timeout",
        "3000",
        "--cluster-replica-validity-factor",
        "0",
    ])
}
