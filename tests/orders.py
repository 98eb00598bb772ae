"""The loop of a client that does what it is told, beside `peer.rs`.

It says `ready`. Then each line that it reads is `NUMBER THING VERB ARGUMENTS`, separated by single spaces, and is
answered when it is done, not before: `NUMBER ok VALUES`, `NUMBER no`, or `NUMBER error WHAT`. A thing is made by the
verb `make ARGUMENTS`. Each has a thread of its own: waiting holds up nothing else. The process ends when its input
does.
"""

import os
import queue
import sys
import threading


class Thing:
    """A thread that carries out one order after the other by the verbs that `make` returned."""

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
    """Nothing and yes have no values; a text and a number are one, and a list may be several."""
    if result is False:
        return "no"
    if result is None or result is True:
        return "ok"
    values = result if isinstance(result, list) else [result]
    return " ".join(["ok", *map(str, values)])


def serve(make, describe=repr):
    """Carries out the orders of the standard input. `make` returns a thing's verbs, and `describe` names an error."""
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
    # There may be threads that wait for ever, and no server to take leave of.
    os._exit(0)
