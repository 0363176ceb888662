"""The contenders, in the order of the tables."""
from contenders.beanstalkd import Beanstalkd
from contenders.bullmq import BullMQ
from contenders.dq import Dq
from contenders.key_per_message import KeyPerMessage
from contenders.set_get_del import SetGetDel
from contenders.streams import Streams
from contenders.zset_hash import ZsetHash
from contenders.zset_list import ZsetList
from contenders.zset_lua import ZsetLua

CONTENDERS = [Dq, ZsetLua, ZsetHash, ZsetList, KeyPerMessage, BullMQ, Beanstalkd, Streams, SetGetDel]
