"""Prints the keys of a server as commands that make them again, one JSON array per line; characters stand for bytes.

    python save.py PORT        with the package redis
"""

import json
import sys

import redis

connection = redis.Redis(port=int(sys.argv[1]), protocol=2)


def text(value):
    return value if isinstance(value, str) else value.decode("latin-1")


def flat(pairs):
    return [word for pair in pairs for word in pair]


for key in sorted(connection.scan_iter()):
    kind = connection.type(key).decode()
    if kind == "string":
        command = ["SET", key, connection.get(key)]
    elif kind == "list":
        command = ["RPUSH", key, *connection.lrange(key, 0, -1)]
    elif kind == "set":
        command = ["SADD", key, *sorted(connection.smembers(key))]
    elif kind == "hash":
        command = ["HSET", key, *flat(sorted(connection.hgetall(key).items()))]
    elif kind == "zset":
        members = connection.zrange(key, 0, -1, withscores=True)
        command = ["ZADD", key, *flat((repr(float(score)), member) for member, score in members)]
    elif b":results:" in key:
        for entry, fields in connection.xrange(key):
            print(json.dumps([text(word) for word in ["XADD", key, entry, *flat(fields.items())]]))
        continue
    else:
        # Streams of events, which no import reads.
        continue
    print(json.dumps([text(word) for word in command]))
