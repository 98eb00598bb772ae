"""The loop of a client that carries out orders, the counterpart of `peer.rs`.

The process prints `ready`. Each line of its input is an order, `NUMBER THING VERB ARGUMENTS`, separated by single
spaces. When the order is done, and not before, the process answers `NUMBER ok VALUES`, `NUMBER no`, or `NUMBER error
WHAT`. The verb `make ARGUMENTS` creates a thing. Each thing has its own thread, so waiting blocks no other thing. The
process exits when its input ends.
"""

import os
import queue
import sys
import threading


class Thing:
    """A thread that carries out one order after the other, using the verbs that `make` returned."""

    def __init__(self, make, describe, say):
        self.make = make
        self.describe = describe
        self.say = say
        self.verbs = {}
        self.orders = queue.Queue()
        threading.Thread(target=self.work, daemon=True).start()

    def work(self):
        while True:
            number, verb, arguments = self.orders.get()
            self.say(number, self.answer(verb, arguments))

    def answer(self, verb, arguments):
        try:
            if verb == "make":
                self.verbs = self.make(*arguments)
                return "ok"
            return in_words(self.verbs[verb](*arguments))
        except Exception as error:
            return ("error " + self.describe(error)).replace("\n", " ")


def in_words(result):
    """Formats a result: a boolean or `None` without values, a text or number as one value, a list as several."""
    if result is False:
        return "no"
    if result is None or result is True:
        return "ok"
    values = result if isinstance(result, list) else [result]
    return " ".join(["ok", *map(str, values)])


def serve(make, describe=repr):
    """Carries out the orders on the standard input. `make` returns a thing's verbs, and `describe` names an error."""
    saying = threading.Lock()

    def say(number, answer):
        with saying:
            print(number, answer, flush=True)

    print("ready", flush=True)
    things = {}
    for line in sys.stdin:
        number, name, verb, *arguments = line.rstrip("\n").split(" ")
        if name not in things:
            things[name] = Thing(make, describe, say)
        things[name].orders.put((number, verb, arguments))
    # Other threads may wait forever, and the server may be unreachable, so nothing is closed.
    os._exit(0)
