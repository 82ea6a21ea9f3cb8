"""redis-cli and redis-benchmark as a distribution ships them. Skipped where they are missing."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios

import pytest
import redis

from support import encode, eventually, have

needs_cli = pytest.mark.skipif(not have("redis-cli"), reason="redis-cli is not installed")
needs_benchmark = pytest.mark.skipif(
    not have("redis-benchmark"), reason="redis-benchmark is not installed"
)


def cli(server, *args, stdin=""):
    """What redis-cli prints."""
    words = ["redis-cli", "-p", str(server.port), *args]
    data = stdin if isinstance(stdin, bytes) else stdin.encode()
    done = subprocess.run(words, input=data, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


@needs_cli
def test_commands_from_arguments(server):
    assert cli(server, "SET", "k", "v 1") == "OK\n"
    assert cli(server, "GET", "k") == "v 1\n"
    assert cli(server, "-3", "HSET", "h", "f", "v") == "1\n"
    assert cli(server, "-3", "--json", "HGETALL", "h").strip() == '{"f":"v"}'
    assert cli(server, "--no-raw", "LPOP", "none") == "(nil)\n"
    assert "WRONGTYPE" in cli(server, "LPOP", "k")


@needs_cli
def test_interactive_help(server):
    """The help of the prompt is made from COMMAND DOCS, which redis-cli fetches at its start."""
    cli(server, "CONFIG", "RESETSTAT")
    said = cli(server, stdin="help set\nhelp @list\nset k v\nget k\n")
    said = re.sub(r"\x1b\[\d+m", "", said)  # Colors.
    assert "SET key value" in said, said
    assert "summary:" in said and "since: 1.0.0" in said and "group: string" in said
    assert "LPUSH key element" in said
    assert said.rstrip().endswith("v")
    with redis.Redis(port=server.port) as r:
        assert r.info("commandstats")["cmdstat_command|docs"]["calls"] >= 1


@needs_cli
def test_prompt_on_a_terminal(server, tmp_path):
    """A person at a prompt: hints while typing need the arguments from COMMAND DOCS."""
    pid, terminal = pty.fork()
    if pid == 0:
        # Without a size, redis-cli would ask the terminal for it and wait.
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
        os.environ.update(TERM="xterm", HOME=str(tmp_path), REDISCLI_HISTFILE="")
        os.execvp("redis-cli", ["redis-cli", "-p", str(server.port)])
    said = b""

    def read_until(text):
        nonlocal said
        while text not in said:
            said += os.read(terminal, 4096)
        said = said.split(text, 1)[1]

    # redis-cli throws away what was typed before it shows a prompt, so each line waits for one.
    prompt = b"127.0.0.1:%d> " % server.port
    try:
        read_until(prompt)
        os.write(terminal, b"SET ")
        read_until(b"key value")  # The hint.
        os.write(terminal, b"k typed\r")
        read_until(b"OK")
        read_until(prompt)
        os.write(terminal, b"help get\r")
        read_until(b"summary:")
        read_until(prompt)
        os.write(terminal, b"exit\r")
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)
    with redis.Redis(port=server.port) as r:
        assert r.get("k") == b"typed"


@needs_cli
def test_scan_and_big_keys(server):
    with redis.Redis(port=server.port) as r:
        r.mset({f"key:{i}": i for i in range(500)})
        r.rpush("list", *range(1_000))
    assert len(cli(server, "--scan", "--pattern", "key:*").splitlines()) == 500
    said = cli(server, "--bigkeys")
    assert "list" in said and "1000 items" in said


@needs_cli
def test_mass_insertion(server):
    commands = b"".join(encode("SET", f"k{i}", i) for i in range(20_000))
    assert "errors: 0, replies: 20000" in cli(server, "--pipe", stdin=commands)
    assert cli(server, "DBSIZE") == "20000\n"


@needs_benchmark
@pytest.mark.parametrize("pipeline", ["1", "16"])
def test_benchmark(server, pipeline):
    tests = "ping,set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,zpopmin,lrange_100,mset"
    words = ["redis-benchmark", "-p", str(server.port), "-q", "-n", "1000", "-c", "10"]
    words += ["-P", pipeline, "-r", "100", "-t", tests]
    done = subprocess.run(words, capture_output=True, timeout=100, check=False)
    said = done.stdout.decode().replace("\r", "\n")
    assert done.returncode == 0, said + done.stderr.decode()
    for name in ("PING_INLINE", "PING_MBULK", "SET", "GET", "SPOP", "ZPOPMIN", "MSET (10 keys)"):
        pattern = rf"^{re.escape(name)}: [\d.]+ requests per second"
        assert re.search(pattern, said, re.MULTILINE), said
    assert "Error" not in said
    with redis.Redis(port=server.port) as r:
        eventually(lambda: r.info("clients")["connected_clients"] <= 2, what="the end of clients")
