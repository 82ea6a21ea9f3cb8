"""Bad input and bad clients: the server lives, says what Redis says, and serves the others."""

import os
import random
import signal
import subprocess
import sys
import threading

import pytest

from support import Raw, encode, eventually

LARGEST_BULK = 512 << 20
# What a stalled client may cost the server. Its announced length must not be paid in advance.
STALL_COST_BYTES = 64 << 20
# Redis's limit of a line that should be a command or a length.
LONGEST_LINE = 64 << 10


@pytest.fixture
def healthy(server):
    """A client that works before the test and must work throughout, on one connection."""
    with Raw(server.port) as client:
        client.call("SET", "healthy", 0)

        def works():
            before = int(client.call("GET", "healthy"))
            return client.call("INCR", "healthy") == b":%d" % (before + 1)

        assert works()
        yield works
        assert works()


def refused(server, data, error):
    """Expects that the server answers `data` with `error` alone and closes the connection."""
    with Raw(server.port) as raw:
        raw.send_if_open(data)
        assert raw.rest() == b"-ERR Protocol error: " + error + b"\r\n"


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"*1\r\n$536870913\r\n", b"invalid bulk length"),
        (b"*1\r\n$-1\r\n", b"invalid bulk length"),
        (b"*1\r\n$abc\r\n", b"invalid bulk length"),
        (b"*1\r\n$9223372036854775808\r\n", b"invalid bulk length"),
        (b"*2147483648\r\n", b"invalid multibulk length"),
        (b"*abc\r\n", b"invalid multibulk length"),
        (b"*1\r\n:1\r\n", b"expected '$', got ':'"),
        (b"*2\r\n$3\r\nGET\r\nk\r\n", b"expected '$', got 'k'"),
        (b'SET k "unbalanced\r\n', b"unbalanced quotes in request"),
        (b"SET k 'a'b\r\n", b"unbalanced quotes in request"),
        (b"x" * (LONGEST_LINE + 1), b"too big inline request"),
        (b"*" + b"1" * LONGEST_LINE, b"too big mbulk count string"),
        (b"*1\r\n$" + b"1" * LONGEST_LINE, b"too big bulk count string"),
    ],
    ids=lambda value: repr(value[:24]) if isinstance(value, bytes) else None,
)
def test_protocol_errors(server, healthy, data, error):
    refused(server, data, error)
    # The commands before the bad one are answered; the ones after it are not.
    with Raw(server.port) as raw:
        # A line that is too long ends nowhere; one that ends would be another error.
        after = encode("SET", "after", 1) if data.endswith(b"\n") else b""
        raw.send_if_open(encode("ECHO", "before") + data + after)
        assert raw.reply() == b"before"
        assert raw.rest() == b"-ERR Protocol error: " + error + b"\r\n"
    with Raw(server.port) as raw:
        assert raw.call("GET", "after") is None
    assert healthy()


def test_a_web_browser_is_turned_away(server, healthy):
    """A page that makes a browser talk to the server must not get a command through."""
    with Raw(server.port) as raw:
        raw.send_if_open(b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\nSET stolen 1\r\n")
        assert b"+OK" not in raw.rest()
    with Raw(server.port) as raw:
        assert raw.call("GET", "stolen") is None


def test_empty_commands_are_skipped(server, healthy):
    with Raw(server.port) as raw:
        raw.send(b"\r\n\r\n*0\r\n*-1\r\n   \r\n" + encode("PING"))
        assert raw.line() == b"+PONG"


def test_half_commands_change_nothing(server, healthy):
    """A client that goes away after any byte of a command has not sent it."""
    command = encode("SET", "half", "value")
    for cut in range(len(command)):
        with Raw(server.port) as raw:
            raw.send(command[:cut])
    with Raw(server.port) as raw:
        assert raw.call("GET", "half") is None
        # One byte after another is still a command.
        for byte in command:
            raw.send(bytes([byte]))
        assert raw.reply() == b"+OK"


def test_clients_killed_in_mid_command(server, healthy):
    program = (
        "import socket, sys, time\n"
        "sock = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
        "sock.sendall(b'*3\\r\\n$3\\r\\nSET\\r\\n$6\\r\\nkilled\\r\\n$1000000\\r\\n' + b'x' * 500000)\n"
        "print('sent', flush=True)\n"
        "time.sleep(600)\n"
    )
    with Raw(server.port) as raw:
        before = clients(raw)
        victims = [
            subprocess.Popen(
                [sys.executable, "-c", program, str(server.port)], stdout=subprocess.PIPE
            )
            for _ in range(8)
        ]
        try:
            for victim in victims:
                assert victim.stdout.readline() == b"sent\n"
            assert clients(raw) == before + len(victims)
            assert healthy()
        finally:
            for victim in victims:
                os.kill(victim.pid, signal.SIGKILL)
                victim.wait()
                victim.stdout.close()
        eventually(lambda: clients(raw) == before, what="the end of the killed clients")
        assert raw.call("GET", "killed") is None


def clients(raw):
    info = raw.call("INFO", "clients").decode()
    return int(info.split("connected_clients:")[1].split()[0])


def test_a_largest_bulk_that_stalls_costs_little(server, healthy):
    before = server.rss_bytes()
    stalled = [Raw(server.port) for _ in range(4)]
    try:
        for raw in stalled:
            raw.send(b"*3\r\n$3\r\nSET\r\n$5\r\nlarge\r\n$%d\r\nxxxx" % LARGEST_BULK)
        for _ in range(100):
            assert healthy()
        assert server.rss_bytes() - before < STALL_COST_BYTES
    finally:
        for raw in stalled:
            raw.sock.close()


def test_many_arguments_that_stall_cost_little(server, healthy):
    before = server.rss_bytes()
    stalled = [Raw(server.port) for _ in range(4)]
    try:
        for raw in stalled:
            raw.send(b"*2147483647\r\n$3\r\nDEL\r\n$1\r\nk\r\n")
        for _ in range(100):
            assert healthy()
        assert server.rss_bytes() - before < STALL_COST_BYTES
    finally:
        for raw in stalled:
            raw.sock.close()


def test_a_million_arguments(server, healthy):
    count = 1_000_000
    with Raw(server.port) as raw:
        arguments = b"$1\r\nx\r\n" * count
        raw.send(b"*%d\r\n$5\r\nRPUSH\r\n$4\r\nlist\r\n" % (count + 2) + arguments)
        assert raw.reply() == b":%d" % count
        raw.send(b"*%d\r\n$3\r\nDEL\r\n" % (count + 1) + arguments)
        assert raw.reply() == b":0"
        raw.send(b"*%d\r\n$3\r\nBAD\r\n" % (count + 1) + arguments)
        reply = raw.reply()
        assert reply.startswith(b"-ERR unknown command 'BAD', with args beginning with: 'x' 'x'")
        assert len(reply) < 1_000
        raw.send(b"*%d\r\n$3\r\nGET\r\n" % (count + 1) + arguments)
        assert raw.reply() == b"-ERR wrong number of arguments for 'get' command"
        assert raw.call("LLEN", "list") == b":%d" % count


@pytest.mark.parametrize("seed", range(4))
def test_random_bytes(server, healthy, seed):
    """Noise, and noise with enough of the protocol in it to get past the first byte."""
    chance = random.Random(seed)
    pieces = [b"*3\r\n", b"$3\r\n", b"SET", b"\r\n", b"$-1\r\n", b"*-1\r\n", b"\x00", b'"', b" "]
    for _ in range(100):
        with Raw(server.port) as raw:
            if chance.random() < 0.5:
                noise = chance.randbytes(chance.randrange(1, 4096))
            else:
                noise = b"".join(
                    chance.choice([chance.choice(pieces), chance.randbytes(3)])
                    for _ in range(chance.randrange(1, 200))
                )
            raw.send_if_open(noise)
    assert healthy()


def test_a_long_pipeline_is_answered_in_order(server, healthy):
    count = 100_000
    with Raw(server.port) as raw:
        commands = b"".join(encode("ECHO", i) for i in range(count))
        writer = threading.Thread(target=raw.send, args=(commands,))
        writer.start()
        for i in range(count):
            assert raw.reply() == b"%d" % i
        writer.join()
    assert healthy()


def test_a_long_pipeline_that_nobody_reads(server, healthy):
    """The client sends 100,000 commands, never reads, and goes."""
    with Raw(server.port) as raw:
        raw.sock.settimeout(1)
        try:
            raw.send(encode("ECHO", "x" * 100) * 100_000)
        except TimeoutError:
            pass  # The server may stop reading from a client that does not read.
        assert healthy()
    assert healthy()


def test_a_slow_reader_gets_everything(server, healthy):
    value = random.Random(1).randbytes(1 << 20)
    count = 32
    with Raw(server.port) as raw:
        assert raw.call("SET", "large", value) == b"+OK"
        raw.send(encode("GET", "large") * count)
        for _ in range(50):
            assert healthy()
        for _ in range(count):
            assert raw.reply() == value


def test_a_reader_too_slow_is_cut_off(server, healthy, configure):
    configure(client_output_buffer_limit="normal 8388608 0 0")
    with Raw(server.port) as raw:
        assert raw.call("SET", "large", b"x" * (1 << 20)) == b"+OK"
        raw.send_if_open(encode("GET", "large") * 64)
        assert len(raw.rest()) < 64 << 20
    assert healthy()


def test_a_query_buffer_has_a_limit(server, healthy, configure):
    configure(client_query_buffer_limit=1 << 20)
    with Raw(server.port) as raw:
        raw.send_if_open(b"*2\r\n$4\r\nECHO\r\n$16777216\r\n" + b"x" * (16 << 20) + b"\r\n")
        assert b"x" not in raw.rest()
    assert healthy()


def test_too_many_clients_are_refused(start):
    server = start("--maxclients", "10")
    with Raw(server.port) as first:
        assert first.call("PING") == b"+PONG"
        crowd = [Raw(server.port) for _ in range(9)]
        try:
            assert all(raw.call("PING") == b"+PONG" for raw in crowd)
            with Raw(server.port) as late:
                assert late.rest() == b"-ERR max number of clients reached\r\n"
            assert first.call("PING") == b"+PONG"
        finally:
            for raw in crowd:
                raw.sock.close()

    def admitted():
        with Raw(server.port) as raw:
            raw.send_if_open(encode("PING"))
            return raw.line() == b"+PONG"

    eventually(admitted, what="room for a client")
    server.alive()


def test_strangers_have_small_limits(start):
    server = start("--requirepass", "secret")
    with Raw(server.port) as raw:
        raw.send_if_open(b"*11\r\n")
        assert raw.rest() == b"-ERR Protocol error: unauthenticated multibulk length\r\n"
    with Raw(server.port) as raw:
        raw.send_if_open(b"*1\r\n$16385\r\n")
        assert raw.rest() == b"-ERR Protocol error: unauthenticated bulk length\r\n"
    with Raw(server.port) as raw:
        assert raw.call("GET", "k") == b"-NOAUTH Authentication required."
        assert raw.call("AUTH", "secret") == b"+OK"
        assert raw.call("GET", "k") is None
    server.alive()


def test_many_connections_come_and_go(server, healthy):
    for _ in range(20):
        crowd = [Raw(server.port) for _ in range(50)]
        for raw in crowd[::2]:
            raw.send(encode("PING"))
        for raw in crowd:
            raw.sock.close()
    assert healthy()
