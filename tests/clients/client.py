"""Sessions of kazoo that carry out orders: `python client.py`.

The process carries out the orders that `orders.py` describes. An error of ZooKeeper is reported by its name in lower
case. The verb `make session CONNECT-STRING TIMEOUT-MS` opens a session.
"""

import pathlib
import queue
import sys
import threading

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import KazooException
from kazoo.protocol.states import ZnodeStat
from kazoo.security import ACL, CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, Id

sys.path.append(str(pathlib.Path(__file__).parents[1]))
from orders import serve

MODES = {
    "persistent": {},
    "ephemeral": {"ephemeral": True},
    "sequential": {"sequence": True},
    "ephemeral-sequential": {"ephemeral": True, "sequence": True},
}
STATES = {"connected": KazooState.CONNECTED, "suspended": KazooState.SUSPENDED, "expired": KazooState.LOST}


class Session:
    def __init__(self, connect_string, timeout):
        timeout = int(timeout) / 1000
        # By default the pause between attempts to connect doubles up to an hour. After an outage shorter than the
        # session, the next attempt could then come after the session has expired.
        retry = {"max_tries": -1, "max_delay": timeout / 8}
        self.client = KazooClient(hosts=connect_string, timeout=timeout, connection_retry=retry)
        self.events = queue.Queue()
        self.states = []
        self.state_changed = threading.Condition()
        self.client.add_listener(self.note)
        self.client.start(timeout=30)
        self.until("connected")
        self.id = self.client.client_id[0]
        self.verbs = {
            "id": lambda: self.id,
            "create": self.create,
            "create-mine": lambda path, data: self.client.create(path, data.encode(), acl=CREATOR_ALL_ACL),
            "get": lambda path: read(self.client.get(path)),
            "length": lambda path: len(self.client.get(path)[0]),
            "exists": lambda path: self.client.exists(path) is not None,
            "set": lambda path, data, version: self.client.set(path, data.encode(), int(version)).version,
            "delete": lambda path, version: self.client.delete(path, int(version)),
            "children": lambda path: sorted(self.client.get_children(path)),
            "fill": self.fill,
            "watch": self.watch,
            "follow": self.follow,
            "event": self.events.get,
            "multi": self.multi,
            "auth": lambda scheme, secret: self.client.add_auth(scheme, secret),
            "acl": lambda path: [in_word(entry) for entry in self.client.get_acls(path)[0]],
            "set-acl": self.set_acl,
            "sync": lambda: self.client.sync("/") is not None,
            "until": self.until,
            "close": self.client.stop,
        }

    def note(self, state):
        with self.state_changed:
            self.states.append(state)
            self.state_changed.notify_all()

    def until(self, state):
        """Waits until the session was in this state at any time since the last such wait."""
        with self.state_changed:
            while STATES[state] not in self.states:
                self.state_changed.wait()
            del self.states[: self.states.index(STATES[state]) + 1]

    def create(self, mode, path, data):
        return self.client.create(path, data.encode(), acl=OPEN_ACL_UNSAFE, **MODES[mode])

    def fill(self, path, count):
        """Creates this number of children, with all requests in flight at the same time."""
        making = [self.client.create_async("%s/child-%05d" % (path, number)) for number in range(int(count))]
        for made in making:
            made.get()

    def watch(self, kind, path):
        ask = {"data": self.client.get, "exists": self.client.exists, "children": self.client.get_children}
        ask[kind](path, watch=lambda event: self.events.put("%s:%s" % (event.type.lower(), event.path)))

    def follow(self, kind, path):
        """Starts the recipe `DataWatch` or `ChildrenWatch`, whose calls become events."""
        if kind == "data":
            self.client.DataWatch(path, lambda data, stat: self.events.put(data.decode() if data is not None else "gone"))
        else:
            self.client.ChildrenWatch(path, lambda names: self.events.put(",".join(["children", *sorted(names)])))

    def multi(self, *orders):
        transaction = self.client.transaction()
        for order in orders:
            verb, path, *rest = order.split(":")
            if verb == "create":
                transaction.create(path, rest[0].encode())
            elif verb == "set":
                transaction.set_data(path, rest[0].encode(), int(rest[1]))
            elif verb == "delete":
                transaction.delete(path, int(rest[0]))
            else:
                transaction.check(path, int(rest[0]))
        return [result(order.split(":")[0], one) for order, one in zip(orders, transaction.commit(), strict=True)]

    def set_acl(self, path, permissions, scheme, identity):
        bits = sum(1 << "rwcda".index(letter) for letter in permissions)
        self.client.set_acls(path, [ACL(bits, Id(scheme, identity))])


def read(answer):
    data, stat = answer
    return [data.decode(), stat.version]


def result(verb, one):
    if isinstance(one, Exception):
        return named(one)
    if isinstance(one, ZnodeStat):
        return "set=%d" % one.version
    return "created=%s" % one if verb == "create" else verb


def in_word(entry):
    letters = "".join(letter for bit, letter in enumerate("rwcda") if entry.perms & 1 << bit)
    return "%s:%s:%s" % (letters, entry.id.scheme, entry.id.id)


def named(error):
    return type(error).__name__.lower().removesuffix("error")


def describe(error):
    return named(error) if isinstance(error, KazooException) else repr(error)


serve(lambda _, *arguments: Session(*arguments).verbs, describe)
