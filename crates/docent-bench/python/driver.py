"""kazoo's recipes under load: `python driver.py`.

Prints `ready`, and then carries out orders. Each input line is an order, `NAME CONNECT-STRING PATH KEY=NUMBER ...`. The
driver prints `start` and `stop` around the measured part, and finally `ok KEY=NUMBER ...` or `error WORDS`. The process exits
when its input ends, even in the middle of an order.
"""

import os
import queue
import sys
import threading
import time

from kazoo.client import KazooClient

ITEM = b"an item of a queue, of some forty bytes"
ROOM = 100


class Order:
    """An order, and the sessions that are opened for it."""

    def __init__(self, line):
        self.name, self.connect, self.path, *settings = line.split(" ")
        self.settings = {key: int(number) for key, number in (setting.split("=") for setting in settings)}
        self.clients = []

    def number(self, key):
        return self.settings.get(key, 0)

    def client(self):
        client = KazooClient(hosts=self.connect, timeout=30)
        client.start(timeout=30)
        self.clients.append(client)
        return client

    def close(self):
        for client in self.clients:
            client.stop()
            client.close()


class Crowd:
    """Threads that repeat an operation until the crowd is over, and count how often."""

    def __init__(self):
        self.counts = []
        self.threads = []
        self.failure = None
        self.is_over = False

    def each(self, turn, counts=True):
        number = len(self.counts)
        self.counts.append(0)

        def repeat():
            try:
                while not self.is_over:
                    turn()
                    self.counts[number] += counts
            except Exception as error:
                if not self.is_over:
                    self.failure = error

        thread = threading.Thread(target=repeat, daemon=True)
        self.threads.append(thread)
        thread.start()

    def measure(self, order):
        time.sleep(order.number("lead") / 1000)
        before = sum(self.counts)
        print("start", flush=True)
        since, cpu = time.monotonic(), time.process_time()
        time.sleep(order.number("window") / 1000)
        done, seconds = sum(self.counts) - before, time.monotonic() - since
        micros = (time.process_time() - cpu) * 1e6
        print("stop", flush=True)
        time.sleep(0.02)
        self.is_over = True
        for thread in self.threads:
            thread.join(0.2)
        if self.failure:
            raise self.failure
        return "ok ops=%d seconds=%f cpu_micros=%f" % (done, seconds, micros)


def mutex(order):
    crowd = Crowd()
    for _ in range(order.number("clients")):
        lock = order.client().Lock(order.path)

        def turn(lock=lock):
            lock.acquire()
            lock.release()

        crowd.each(turn)
    return crowd.measure(order)


def locking_queue(order):
    crowd, room = Crowd(), threading.Semaphore(ROOM)
    for _ in range(order.number("producers")):
        target = order.client().LockingQueue(order.path)

        def put(target=target):
            if room.acquire(timeout=0.1):
                target.put(ITEM)

        crowd.each(put, counts=False)
    for _ in range(order.number("consumers")):
        source = order.client().LockingQueue(order.path)

        def take(source=source):
            source.get()
            source.consume()
            room.release()

        crowd.each(take)
    return crowd.measure(order)


ORDERS = {"mutex": mutex, "queue": locking_queue}


def answer(line):
    order = Order(line)
    try:
        return ORDERS[order.name](order)
    except Exception as error:
        return ("error %r" % error).replace("\n", " ")
    finally:
        order.close()


def read(lines):
    for line in sys.stdin:
        lines.put(line.rstrip("\n"))
    os._exit(0)


def main():
    lines = queue.Queue()
    threading.Thread(target=read, args=[lines], daemon=True).start()
    print("ready", flush=True)
    while True:
        print(answer(lines.get()), flush=True)


main()
