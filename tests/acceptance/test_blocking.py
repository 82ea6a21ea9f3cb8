"""Clients that wait for list elements: who is served, by what, in which order, exactly once."""

import collections
import contextlib
import os
import random
import socket
import threading

import pytest

from support import Raw, encode, eventually

KEYS = [b"queue:%d" % number for number in range(6)]


class Waiter(Raw):
    """A client that waits."""

    def __init__(self, port):
        super().__init__(port)
        self.id = int(self.call("CLIENT", "ID")[1:])

    def wait_for(self, admin, *words):
        """Sends a command and returns once the server lists the client as blocked."""
        self.send_words(*words)
        eventually(lambda: self.is_blocked(admin), what=f"the wait of {words}")
        return self

    def is_blocked(self, admin):
        return b" flags=b " in admin.call("CLIENT", "LIST", "ID", self.id)

    def send_words(self, *words):
        self.send(encode(*words))


@pytest.fixture
def admin(server):
    with Raw(server.port) as client:
        yield client


@pytest.fixture
def waiter(server, admin):
    """Makes clients that wait for what they are told."""
    made = []

    def make(*words):
        made.append(Waiter(server.port))
        return made[-1].wait_for(admin, *words)

    yield make
    for client in made:
        client.sock.close()
    eventually(lambda: not any(one.is_blocked(admin) for one in made), what="the end of all waits")


def test_first_come_first_served(admin, waiter):
    # The one with two keys needs two shards, which the push does not hold: it still keeps its turn.
    waiters = [
        waiter("BLPOP", "k", 0),
        waiter("BLPOP", "other", "k", 0),
        waiter("BLMOVE", "k", "moved", "LEFT", "RIGHT", 0),
        waiter("BLMPOP", 0, 2, "other", "k", "LEFT", "COUNT", 2),
        waiter("BRPOP", "k", 0),
    ]
    assert admin.call("RPUSH", "k", 1, 2, 3, 4, 5, 6) == b":6"
    got = [one.reply() for one in waiters]
    assert got == [[b"k", b"1"], [b"k", b"2"], b"3", [b"k", [b"4", b"5"]], [b"k", b"6"]]
    assert admin.call("LRANGE", "moved", 0, -1) == [b"3"]


@pytest.mark.parametrize(
    "commands",
    [
        [("LPUSH", "k", "e")],
        [("MULTI",), ("RPUSH", "k", "x"), ("LPOP", "k"), ("RPUSH", "k", "e"), ("EXEC",)],
        [("RPUSH", "a", "e"), ("RENAME", "a", "k")],
        [("RPUSH", "a", "e"), ("RENAMENX", "a", "k")],
        [("RPUSH", "a", "e"), ("COPY", "a", "k")],
        [("RPUSH", "a", "e"), ("LMOVE", "a", "k", "LEFT", "LEFT")],
        [("RPUSH", "a", "e"), ("RPOPLPUSH", "a", "k")],
        [("RPUSH", "a", "e"), ("BLMOVE", "a", "k", "LEFT", "LEFT", 0)],
        [("RPUSH", "a", "e"), ("SORT", "a", "ALPHA", "STORE", "k")],
        [("SELECT", 1), ("RPUSH", "k", "e"), ("MOVE", "k", 0)],
        [("SELECT", 1), ("RPUSH", "k", "e"), ("SWAPDB", 0, 1)],
        [("SET", "k", "a string"), ("DEL", "k"), ("RPUSH", "k", "e")],
    ],
    ids=lambda commands: " ".join(words[0] for words in commands),
)
def test_served_by_whatever_makes_a_list(server, waiter, commands):
    one, several = waiter("BLPOP", "k", 0), waiter("BRPOP", "other", "k", "k", 0)
    with Raw(server.port) as client:
        for words in commands:
            client.call(*words)
        assert one.reply() == [b"k", b"e"]
        several.quiet()
        client.call("SELECT", 0)
        assert client.call("LPUSH", "k", "f") == b":1"
        assert several.reply() == [b"k", b"f"]
        assert client.call("EXISTS", "k") == b":0"


def test_a_chain_of_waiters(admin, waiter):
    chain = [waiter("BLMOVE", f"c{at}", f"c{at + 1}", "LEFT", "RIGHT", 0) for at in range(5)]
    last = waiter("BLPOP", "c5", 0)
    assert admin.call("RPUSH", "c0", "e") == b":1"
    assert [one.reply() for one in chain] == [b"e"] * 5
    assert last.reply() == [b"c5", b"e"]


def test_an_error_ends_a_wait(admin, waiter):
    admin.call("SET", "string", "v")
    one = waiter("BLMOVE", "k", "string", "LEFT", "LEFT", 0)
    assert admin.call("RPUSH", "k", "e") == b":1"
    assert one.reply().startswith(b"-WRONGTYPE")
    assert admin.call("LRANGE", "k", 0, -1) == [b"e"]


def test_unblock_and_timeout(admin, waiter):
    timed_out, failed = waiter("BLPOP", "k", 0), waiter("BLPOP", "k", 0)
    assert admin.call("CLIENT", "UNBLOCK", timed_out.id) == b":1"
    assert admin.call("CLIENT", "UNBLOCK", failed.id, "ERROR") == b":1"
    assert timed_out.reply() is None
    assert failed.reply() == b"-UNBLOCKED client unblocked via CLIENT UNBLOCK"
    assert admin.call("CLIENT", "UNBLOCK", failed.id) == b":0"
    assert admin.call("BLPOP", "k", 0.01) is None
    assert admin.call("BLMOVE", "k", "l", "LEFT", "LEFT", 0.01) is None
    assert admin.call("RPUSH", "k", "e") == b":1"
    assert admin.call("LLEN", "k") == b":1"


def test_the_dead_take_nothing(server, admin):
    for leave in ("close", "kill"):
        one = Waiter(server.port).wait_for(admin, "BLPOP", "k", 0)
        if leave == "kill":
            assert admin.call("CLIENT", "KILL", "ID", one.id) == b":1"
        else:
            one.sock.close()
        gone = lambda: admin.call("CLIENT", "LIST", "ID", one.id) == b""
        eventually(gone, what="the end of the connection")
        assert admin.call("RPUSH", "k", "e") == b":1"
        assert admin.call("LPOP", "k") == b"e"
        one.sock.close()


def test_what_stands_behind_a_wait_waits_too(admin, waiter):
    one = waiter("BLPOP", "k", 0)
    one.send_words("SET", "behind", "v")
    one.send_words("GET", "behind")
    assert admin.call("EXISTS", "behind") == b":0"
    assert admin.call("RPUSH", "k", "e") == b":1"
    assert [one.reply() for _ in range(3)] == [[b"k", b"e"], b"+OK", b"v"]


def test_a_wait_whose_reply_is_not_wanted(admin, waiter):
    one = waiter("BLPOP", "warm-up", 0)
    assert admin.call("RPUSH", "warm-up", "e") == b":1"
    assert one.reply() == [b"warm-up", b"e"]
    one.send_words("CLIENT", "REPLY", "SKIP")
    one.wait_for(admin, "BLPOP", "k", 0)
    assert admin.call("RPUSH", "k", "e") == b":1"
    assert one.call("PING") == b"+PONG"
    assert admin.call("LLEN", "k") == b":0"


class Crowd:
    """Producers, consumers and a troublemaker on a few queues; what comes out is written down."""

    def __init__(self, port, seed):
        self.port = port
        self.seed = seed
        self.lock = threading.Lock()
        self.produced = collections.Counter()
        self.received = collections.Counter()
        self.consumers = {}
        self.failures = []
        self.stop = threading.Event()

    def run(self, producers, consumers, pushes):
        makers = [self.thread(self.produce, number, pushes) for number in range(producers)]
        others = [self.thread(self.consume, number) for number in range(consumers)]
        others.append(self.thread(self.trouble))
        for thread in makers:
            thread.join()
        self.stop.set()
        for thread in others:
            thread.join()
        assert not self.failures, self.failures

    def thread(self, body, *arguments):
        def guarded():
            try:
                body(*arguments)
            except Exception as failure:
                self.failures.append(repr(failure))
                self.stop.set()

        thread = threading.Thread(target=guarded)
        thread.start()
        return thread

    def random(self, *name):
        return random.Random(f"{self.seed} {name}")

    def count(self, counter, elements):
        with self.lock:
            counter.update(elements)

    def produce(self, number, pushes):
        choose = self.random("producer", number)
        own = b"own:%d" % number
        made = 0

        def elements(count):
            nonlocal made
            made += count
            new = [b"%d-%d" % (number, made - at) for at in range(count)]
            self.count(self.produced, new)
            return new

        with Raw(self.port) as client:
            for _ in range(pushes):
                key = choose.choice(KEYS)
                way = choose.randrange(6)
                if way < 2:
                    command = choose.choice(["LPUSH", "RPUSH"])
                    client.call(command, key, *elements(choose.randint(1, 3)))
                elif way == 2:
                    # Two queues at once, and an element that only the transaction sees.
                    client.call("MULTI")
                    client.call("RPUSH", key, *elements(1))
                    client.call("LPUSH", choose.choice(KEYS), *elements(2))
                    client.call("RPUSH", own, "unseen")
                    client.call("LPOP", own)
                    assert client.call("EXEC")[3] == b"unseen"
                elif way == 3:
                    client.call("RPUSH", own, *elements(2))
                    if client.call("RENAMENX", own, key) == b":0":
                        while client.call("LMOVE", own, key, "LEFT", "RIGHT") is not None:
                            pass
                elif way == 4:
                    client.call("RPUSH", own, *elements(1))
                    assert client.call("BLMOVE", own, key, "RIGHT", "LEFT", 0) is not None
                else:
                    new = b"%d-x%d" % (number, made)
                    made += 1
                    if client.call("RPUSHX", key, new) != b":0":
                        self.count(self.produced, [new])

    def consume(self, number):
        choose = self.random("consumer", number)
        client = self.join(number)
        while not self.stop.is_set():
            leaves = choose.random() < 0.2
            words = self.request(choose, number, 0 if leaves else choose.choice([0.005, 0.05, 0.3]))
            with contextlib.suppress(OSError):  # Killed already; then there is no reply either.
                client.send_words(*words)
                if leaves:
                    # Closing one half is leaving, to the server; what it still sends must count.
                    client.sock.shutdown(socket.SHUT_WR)
            reply = self.reply_or_end(client)
            if reply is not None:
                self.count(self.received, self.elements(words[0], reply))
            if leaves or reply is None:
                client.sock.close()
                client = self.join(number)
        client.sock.close()

    def join(self, number):
        client = Waiter(self.port)
        self.consumers[number] = client.id
        return client

    def request(self, choose, number, timeout):
        keys = choose.sample(KEYS, choose.randint(1, 3))
        moved = choose.choice([*KEYS, b"moved:%d" % number])
        ends = [choose.choice(["LEFT", "RIGHT"]) for _ in range(2)]
        return choose.choice(
            [
                ("BLPOP", *keys, timeout),
                ("BRPOP", *keys, timeout),
                ("BLMPOP", timeout, len(keys), *keys, ends[0], "COUNT", choose.randint(1, 3)),
                ("BLMOVE", keys[0], moved, *ends, timeout),
                ("BRPOPLPUSH", keys[0], moved, timeout),
                ("LPOP", keys[0], 2),
                ("LMPOP", len(keys), *keys, ends[0]),
            ]
        )

    def reply_or_end(self, client):
        """The reply, `[]` for "no element" and errors, or `None` if the server closed instead."""
        try:
            head = client.line()
        except ConnectionError:
            assert client.buf == b"", "the server closed amid a reply"
            return None
        client.buf = head + b"\r\n" + client.buf
        reply = client.reply()
        if isinstance(reply, bytes) and reply.startswith(b"-"):
            assert reply.startswith(b"-UNBLOCKED"), reply
            reply = None
        return reply or []

    def elements(self, command, reply):
        """What a reply takes out of the queues."""
        if command in ("BLMOVE", "BRPOPLPUSH") or not reply:
            return []
        if command in ("BLPOP", "BRPOP"):
            return reply[1:]
        return reply[1] if command in ("BLMPOP", "LMPOP") else reply

    def trouble(self):
        choose = self.random("troublemaker")
        with Raw(self.port) as client:
            while not self.stop.wait(0.001):
                consumers = list(self.consumers.values())
                if not consumers:
                    continue
                victim = choose.choice(consumers)
                if choose.random() < 0.2:
                    client.call("CLIENT", "KILL", "ID", victim)
                else:
                    client.call("CLIENT", "UNBLOCK", victim, choose.choice(["TIMEOUT", "ERROR"]))

    def left(self):
        """What is still in the lists."""
        with Raw(self.port) as client:
            lists = [client.call("LRANGE", key, 0, -1) for key in client.call("KEYS", "*")]
        return collections.Counter(element for one in lists for element in one)


# More seeds, for a longer search, by KILN_BLOCKING_SEEDS.
@pytest.mark.parametrize("seed", range(int(os.environ.get("KILN_BLOCKING_SEEDS", 2))))
def test_every_element_arrives_once(start, seed):
    server = start("--threads", "4")
    crowd = Crowd(server.port, seed)
    crowd.run(producers=4, consumers=8, pushes=200)
    left = crowd.left()
    assert crowd.received + left == crowd.produced
    assert sum(crowd.received.values()) > len(crowd.produced) // 4, "the consumers hardly took part"
    server.alive()
