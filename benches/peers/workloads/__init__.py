"""The workloads, in the order in which they run."""
from workloads.burst import Burst
from workloads.capabilities import Capabilities
from workloads.deletion import Deletion
from workloads.durable_life import DurableLife
from workloads.falling_due import FallingDue
from workloads.growth import Growth
from workloads.life import Life
from workloads.many_queues import ManyQueues
from workloads.memory import Memory
from workloads.payload_sizes import PayloadSizes
from workloads.persistence import Persistence
from workloads.punctuality import Punctuality
from workloads.pushing import Pushing
from workloads.waiters import Waiters
from workloads.worker import Worker

WORKLOADS = [Life, Worker, DurableLife, Pushing, Memory, Burst, Punctuality, Growth, Persistence, FallingDue, Deletion,
             ManyQueues, Waiters, Capabilities, PayloadSizes]
