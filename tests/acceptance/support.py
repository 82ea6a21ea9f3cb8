"""What the acceptance tests share: a server as a process, a raw connection, and patience.

Nothing here sleeps to wait for an effect: `eventually` asks until the answer is right or a
deadline is over, so a slow machine makes a test slower and never wrong.
"""

import os
import pathlib
import shutil
import socket
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Long enough for a busy machine; a passing test never waits for it.
PATIENCE_SECONDS = 30
POLL_SECONDS = 0.01


def server_binary():
    """The server under test: KILN_SERVER, else what `cargo build` leaves."""
    named = os.environ.get("KILN_SERVER")
    if named:
        return named
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    for profile in ("debug", "release"):
        built = target / profile / "kiln-server"
        if built.exists():
            return str(built)
    raise RuntimeError("no server to test: run `cargo build`, or set KILN_SERVER")


def eventually(check, within=PATIENCE_SECONDS, what="the condition"):
    """The first true value of `check()`."""
    deadline = time.monotonic() + within
    while True:
        value = check()
        if value:
            return value
        assert time.monotonic() < deadline, f"{what} did not come about within {within} s"
        time.sleep(POLL_SECONDS)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server process on a port of its own, without persistence."""

    def __init__(self, folder, *directives):
        self.port = free_port()
        self.log = pathlib.Path(folder) / f"server-{self.port}.log"
        words = [server_binary(), "--port", str(self.port), "--save", "", "--appendonly", "no"]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [*words, *directives],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        eventually(self.ready, what="the start of the server")

    def ready(self):
        assert self.process.poll() is None, f"the server ended at once:\n{self.log.read_text()}"
        try:
            with Raw(self.port) as probe:
                probe.send(b"PING\r\n")
                return probe.line()[:1] in (b"+", b"-")
        except OSError:
            return False

    def alive(self):
        """Expects that the server runs, answers, and that no thread of it panicked."""
        assert self.process.poll() is None, f"the server ended:\n{self.log.read_text()}"
        with Raw(self.port) as probe:
            probe.send(b"*1\r\n$4\r\nPING\r\n")
            assert probe.line()[:1] in (b"+", b"-")
        log = self.log.read_text(errors="replace")
        assert "panicked at" not in log, log

    def rss_bytes(self):
        """Resident memory of the process."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) * 1024

    def stop(self):
        self.process.kill()
        self.process.wait()


class Raw:
    """A connection that sends what it is told, byte for byte."""

    def __init__(self, port):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buf = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def send(self, data):
        self.sock.sendall(data)

    def send_if_open(self, data):
        """Sends as much of `data` as the server takes before it closes."""
        try:
            self.sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def call(self, *words):
        self.send(encode(*words))
        return self.reply()

    def line(self):
        while b"\r\n" not in self.buf:
            self.more()
        line, self.buf = self.buf.split(b"\r\n", 1)
        return line

    def more(self):
        got = self.sock.recv(1 << 16)
        if not got:
            raise ConnectionError("closed by the server")
        self.buf += got

    def exactly(self, count):
        while len(self.buf) < count:
            self.more()
        data, self.buf = self.buf[:count], self.buf[count:]
        return data

    def reply(self):
        """One RESP2 reply: lists and bytes, first byte kept for all but bulk strings."""
        head = self.line()
        if head[:1] == b"$":
            length = int(head[1:])
            return None if length < 0 else self.exactly(length + 2)[:-2]
        if head[:1] == b"*":
            count = int(head[1:])
            return None if count < 0 else [self.reply() for _ in range(count)]
        return head

    def quiet(self, seconds=0.1):
        """Expects that nothing arrives for a while."""
        self.sock.settimeout(seconds)
        try:
            got = self.buf or self.sock.recv(1)
        except TimeoutError:
            return
        finally:
            self.sock.settimeout(PATIENCE_SECONDS)
        raise AssertionError(f"the server sent {got!r}")

    def rest(self):
        """All that the server still sends before it closes the connection."""
        try:
            while True:
                self.more()
        except (ConnectionError, ConnectionResetError):
            rest, self.buf = self.buf, b""
            return rest


def encode(*words):
    """A command as an array of bulk strings."""
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    parts = [b"*%d\r\n" % len(words)]
    parts += [b"$%d\r\n%s\r\n" % (len(word), word) for word in words]
    return b"".join(parts)


def have(program):
    return shutil.which(program) is not None
