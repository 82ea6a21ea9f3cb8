"""redis-py, the client that most applications use, over the families that Kiln serves."""

import threading
import time

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from support import Raw, encode, eventually


def blocked(r, count):
    """Waits until `count` clients are blocked."""
    eventually(lambda: r.info("clients")["blocked_clients"] == count, what=f"{count} blocked")


def in_thread(work):
    """Runs `work` in a thread; the returned function waits for its result."""
    outcome = []
    thread = threading.Thread(target=lambda: outcome.append(work()), daemon=True)
    thread.start()

    def result():
        thread.join(30)
        assert outcome, "the thread did not end"
        return outcome[0]

    return result


def test_strings(r):
    assert r.set("k", "v") is True
    assert r.get("k") == "v"
    assert r.get("missing") is None
    assert r.set("k", "w", nx=True) is None
    assert r.set("k", "w", xx=True, get=True) == "v"
    assert r.set("t", "v", ex=100) and 0 < r.ttl("t") <= 100
    assert r.set("t", "w", keepttl=True) and r.ttl("t") > 0
    assert r.setnx("n", 1) and not r.setnx("n", 2)
    assert r.incr("n", 41) == 42
    assert r.decr("n", 2) == 40
    assert r.incrbyfloat("n", 0.5) == 40.5
    assert r.append("k", "!!") == 3
    assert r.strlen("k") == 3
    assert r.setrange("k", 1, "ab") == 3
    assert r.getrange("k", 0, -1) == "wab"
    assert r.getdel("k") == "wab" and not r.exists("k")
    assert r.getset("k", 1) is None
    assert r.getex("k", px=50_000) == "1" and 0 < r.pttl("k") <= 50_000
    assert r.mset({"a": 1, "b": 2}) and r.mget("a", "b", "c") == ["1", "2", None]
    assert r.msetnx({"b": 1, "c": 2}) is False and not r.exists("c")
    assert r.lcs("a", "b") == ""
    with pytest.raises(redis.ResponseError, match="value is not an integer or out of range"):
        r.set("k", "text") and r.incr("k")


def test_bytes_survive(server):
    with redis.Redis(port=server.port) as r:
        every = bytes(range(256)) * 5
        r.set(every, every)
        assert r.get(every) == every
        r.set(b"", b"")
        assert r.get(b"") == b""
        large = every * 4096
        r.set("large", large)
        assert r.get("large") == large


def test_keys_and_expiry(r):
    r.mset({"a": 1, "b": 2, "c": 3})
    assert r.exists("a", "b", "missing", "a") == 3
    assert r.delete("a", "missing") == 1 and r.unlink("b") == 1
    assert sorted(r.keys("*")) == ["c"] and r.randomkey() == "c"
    assert r.rename("c", "d") and r.type("d") == "string"
    with pytest.raises(redis.ResponseError, match="no such key"):
        r.rename("missing", "x")
    assert r.copy("d", "e") and not r.renamenx("d", "e")
    assert r.expire("d", 100) and r.expire("d", 50, gt=True) is False
    assert r.persist("d") and r.ttl("d") == -1 and r.ttl("missing") == -2
    at = int(time.time()) + 1000
    assert r.expireat("d", at) and r.expiretime("d") == at
    assert r.pexpire("d", 1)
    eventually(lambda: not r.exists("d"), what="the expiry")
    assert r.object("encoding", "e") == "int"
    assert r.touch("e", "missing") == 1
    assert r.move("e", 1) and not r.exists("e")
    assert r.dbsize() == 0
    r.flushall()


def test_databases_are_apart(server):
    with redis.Redis(port=server.port) as zero, redis.Redis(port=server.port, db=5) as five:
        zero.set("k", 0)
        five.set("k", 5)
        assert zero.get("k") == b"0" and five.get("k") == b"5"
        zero.swapdb(0, 5)
        assert zero.get("k") == b"5" and five.get("k") == b"0"
        five.flushdb()
        assert zero.dbsize() == 1 and five.dbsize() == 0


def test_bitmaps_and_hyperloglog(r):
    assert r.setbit("b", 7, 1) == 0 and r.getbit("b", 7) == 1
    assert r.bitcount("b") == 1 and r.bitpos("b", 1) == 7
    r.set("x", "abc") and r.set("y", "abd")
    assert r.bitop("XOR", "z", "x", "y") == 3 and r.bitcount("z") == 3
    field = r.bitfield("f").set("u8", 0, 255).incrby("u8", 0, 10).get("u4", 0)
    assert field.execute() == [0, 9, 0]
    assert r.pfadd("p", *range(1000)) == 1
    assert abs(r.pfcount("p") - 1000) < 50
    r.pfadd("q", *range(500, 1500))
    assert r.pfmerge("m", "p", "q") and abs(r.pfcount("m") - 1500) < 75


def test_lists(r):
    assert r.rpush("l", 1, 2, 3) == 3 and r.lpush("l", 0) == 4
    assert r.lpushx("missing", 1) == 0
    assert r.lrange("l", 0, -1) == ["0", "1", "2", "3"]
    assert r.lindex("l", -1) == "3" and r.llen("l") == 4
    assert r.lset("l", 0, "z") and r.linsert("l", "AFTER", "z", "y") == 5
    assert r.lpos("l", "3") == 4 and r.lrem("l", 1, "y") == 1
    assert r.lpop("l") == "z" and r.rpop("l", 2) == ["3", "2"]
    assert r.rpush("l", 5, 6, 7) == 4 and r.ltrim("l", 1, 2)
    assert r.lmove("l", "m", "LEFT", "RIGHT") == "5" and r.rpoplpush("m", "l") == "5"
    assert r.lmpop(2, "none", "l", direction="RIGHT", count=5) == ["l", ["6", "5"]]
    assert not r.exists("l")
    r.rpush("large", *range(10_000))
    assert r.lrange("large", 4_999, 5_000) == ["4999", "5000"]
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        r.get("large")


def test_sets(r):
    assert r.sadd("s", "a", "b", "c") == 3 and r.sadd("s", "a") == 0
    assert r.scard("s") == 3 and r.sismember("s", "a") == 1
    assert list(map(bool, r.smismember("s", ["a", "x"]))) == [True, False]
    assert set(r.smembers("s")) == {"a", "b", "c"}
    r.sadd("t", "b", "c", "d")
    assert set(r.sinter("s", "t")) == {"b", "c"} and r.sintercard(2, ["s", "t"], limit=1) == 1
    assert set(r.sunion("s", "t")) == set("abcd") and set(r.sdiff("s", "t")) == {"a"}
    assert r.sinterstore("i", "s", "t") == 2 and r.sunionstore("u", "s", "t") == 4
    assert r.smove("s", "t", "a") and r.srem("s", "b", "x") == 1
    assert r.srandmember("u") in "abcd" and len(r.srandmember("u", -7)) == 7
    assert r.spop("u") in "abcd" and len(r.spop("u", 10)) == 3 and not r.exists("u")
    r.sadd("ints", *range(100))
    assert r.object("encoding", "ints") == "intset"


def test_hashes(r):
    assert r.hset("h", "f", 1) == 1 and r.hset("h", mapping={"f": 2, "g": "x"}) == 1
    assert r.hget("h", "f") == "2" and r.hgetall("h") == {"f": "2", "g": "x"}
    assert r.hmget("h", "f", "none") == ["2", None] and r.hlen("h") == 2
    assert sorted(r.hkeys("h")) == ["f", "g"] and sorted(r.hvals("h")) == ["2", "x"]
    assert r.hsetnx("h", "f", 9) == 0 and r.hexists("h", "f")
    assert r.hincrby("h", "f", 3) == 5 and r.hincrbyfloat("h", "f", 0.5) == 5.5
    assert r.hstrlen("h", "f") == 3 and r.hrandfield("h") in "fg"
    assert r.hdel("h", "f", "none") == 1
    assert r.hexpire("h", 100, "g", "none") == [1, -2]
    assert 0 < r.httl("h", "g")[0] <= 100 and r.hpersist("h", "g") == [1]
    assert r.hgetex("h", "g", px=1) == ["x"]
    eventually(lambda: not r.hexists("h", "g"), what="the expiry of the field")
    r.hset("h", "a", 1)
    assert r.hgetdel("h", "a", "none") == ["1", None] and not r.exists("h")


def test_sorted_sets(r):
    assert r.zadd("z", {"a": 1, "b": 2.5, "c": 3}) == 3
    assert r.zadd("z", {"a": 5}, nx=True) == 0 and r.zadd("z", {"a": 0.5}, lt=True, ch=True) == 1
    assert r.zscore("z", "b") == 2.5 and r.zscore("z", "none") is None
    assert r.zcard("z") == 3 and r.zcount("z", "(0.5", "+inf") == 2
    assert r.zrank("z", "c") == 2 and r.zrevrank("z", "c") == 0
    assert r.zrange("z", 0, -1) == ["a", "b", "c"]
    assert [tuple(pair) for pair in r.zrange("z", 0, 0, withscores=True)] == [("a", 0.5)]
    assert r.zrange("z", 1, 3, byscore=True, offset=0, num=1) == ["b"]
    assert r.zrevrangebyscore("z", "+inf", 2) == ["c", "b"]
    assert r.zincrby("z", 1, "a") == 1.5 and r.zmscore("z", ["a", "x"]) == [1.5, None]
    r.zadd("y", {"b": 1, "d": 1})
    assert r.zunionstore("u", ["z", "y"], aggregate="MAX") == 4 and r.zinter(["z", "y"]) == ["b"]
    assert r.zdiff(["z", "y"]) == ["a", "c"] and r.zintercard(2, ["z", "y"]) == 1
    assert [tuple(pair) for pair in r.zpopmin("z", 1)] == [("a", 1.5)]
    assert r.zrem("z", "b", "x") == 1 and r.zremrangebyrank("z", 0, -1) == 1
    r.zadd("lex", dict.fromkeys("abcd", 0))
    assert r.zrangebylex("lex", "[b", "(d") == ["b", "c"] and r.zlexcount("lex", "-", "+") == 4
    assert r.zrangestore("part", "lex", 1, 2) == 2
    assert len(r.zrandmember("lex", 2)) == 2


def test_scans_see_everything(r):
    everything = {f"key:{i}" for i in range(3_000)}
    with r.pipeline(transaction=False) as pipe:
        for key in everything:
            pipe.set(key, 1)
        pipe.execute()
    r.sadd("other", 1)
    assert set(r.scan_iter(count=100)) == everything | {"other"}
    assert set(r.scan_iter(match="key:1*")) == {k for k in everything if k.startswith("key:1")}
    assert list(r.scan_iter(_type="set")) == ["other"]
    members = [str(i) for i in range(2_000)]
    r.sadd("s", *members)
    r.hset("h", mapping=dict.fromkeys(members, "v"))
    r.zadd("z", {member: int(member) for member in members})
    assert sorted(set(r.sscan_iter("s"))) == sorted(members)
    assert dict(r.hscan_iter("h")) == dict.fromkeys(members, "v")
    assert dict(r.zscan_iter("z")) == {member: float(member) for member in members}


def test_sort(r):
    r.rpush("l", 3, 1, 2)
    r.mset({"w_1": 3, "w_2": 2, "w_3": 1, "o_1": "one", "o_2": "two", "o_3": "three"})
    assert r.sort("l") == ["1", "2", "3"] and r.sort("l", desc=True) == ["3", "2", "1"]
    assert r.sort("l", by="w_*", get="o_*") == ["three", "two", "one"]
    assert r.sort("l", start=1, num=1, store="d") == 1 and r.lrange("d", 0, -1) == ["2"]


def test_pipelines(r):
    with r.pipeline(transaction=False) as pipe:
        for i in range(5_000):
            pipe.set(f"k{i}", i).get(f"k{i}")
        replies = pipe.execute()
    assert replies == [reply for i in range(5_000) for reply in (True, str(i))]
    with r.pipeline() as pipe:
        pipe.incr("n").rpush("n", 1).incr("n")
        replies = pipe.execute(raise_on_error=False)
    assert replies[0] == 1 and replies[2] == 2
    assert isinstance(replies[1], redis.ResponseError)


def test_transactions_watch_their_keys(r):
    r.set("n", 1)
    with r.pipeline() as pipe:
        pipe.watch("n")
        seen = int(pipe.get("n"))
        r.incr("n")
        pipe.multi()
        pipe.set("n", seen + 100)
        with pytest.raises(redis.WatchError):
            pipe.execute()
    assert r.get("n") == "2"
    assert r.transaction(lambda pipe: pipe.multi() or pipe.incr("n"), "n") == [3]
    with r.pipeline() as pipe:
        pipe.watch("n", "other")
        pipe.unwatch()
        r.incr("n")
        pipe.multi()
        pipe.get("n")
        assert pipe.execute() == ["4"]


def test_counters_lose_nothing_between_threads(r):
    """Optimistic locking, as applications do it: every increment is there at the end."""

    def work():
        for _ in range(50):
            r.transaction(
                lambda pipe: (n := int(pipe.get("n") or 0), pipe.multi(), pipe.set("n", n + 1)),
                "n",
            )
        return True

    threads = [in_thread(work) for _ in range(4)]
    assert all(result() for result in threads)
    assert r.get("n") == "200"


def test_blocking_pops(r):
    first = in_thread(lambda: r.blpop(["q", "p"], timeout=20))
    blocked(r, 1)
    second = in_thread(lambda: r.blpop("q", timeout=20))
    blocked(r, 2)
    r.rpush("q", "one", "two")
    assert list(first()) == ["q", "one"] and list(second()) == ["q", "two"]

    move = in_thread(lambda: r.blmove("a", "b", 20))
    blocked(r, 1)
    r.rpush("a", "x")
    assert move() == "x" and r.lrange("b", 0, -1) == ["x"]

    popmin = in_thread(lambda: r.bzpopmin("z", timeout=20))
    blocked(r, 1)
    r.zadd("z", {"m": 2, "l": 1})
    assert list(popmin()) == ["z", "l", 1.0]

    several = in_thread(lambda: r.blmpop(20, 2, "v", "w", direction="LEFT", count=2))
    blocked(r, 1)
    r.rpush("w", 1, 2, 3)
    assert several() == ["w", ["1", "2"]]
    assert r.brpop("none", timeout=0.05) is None
    assert r.bzpopmax(["none"], timeout=0.05) is None


def test_a_dead_waiter_takes_nothing(r, server):
    with Raw(server.port) as waiter:
        waiter.send(encode("BLPOP", "q", 0))
        blocked(r, 1)
    blocked(r, 0)
    assert r.rpush("q", 1) == 1 and r.llen("q") == 1


def test_client_commands(server):
    with redis.Redis(port=server.port, client_name="first", decode_responses=True) as one:
        with redis.Redis(port=server.port, decode_responses=True) as two:
            assert one.client_getname() == "first"
            assert two.client_setname("second") and two.client_getname() == "second"
            names = {client["name"] for client in one.client_list()}
            assert {"first", "second"} <= names
            info = two.client_info()
            assert info["name"] == "second" and int(info["id"]) == two.client_id()
            assert one.client_kill_filter(_id=two.client_id()) == 1
            assert two.ping()  # redis-py connects anew.


def test_client_unblock(server):
    with redis.Redis(port=server.port, decode_responses=True) as r, Raw(server.port) as waiter:
        identity = int(waiter.call("CLIENT", "ID")[1:])
        waiter.send(encode("BLPOP", "q", 0))
        blocked(r, 1)
        assert r.client_unblock(identity) == 1
        assert waiter.reply() is None
        waiter.send(encode("BLPOP", "q", 0))
        blocked(r, 1)
        assert r.client_unblock(identity, error=True) == 1
        assert waiter.reply() == b"-UNBLOCKED client unblocked via CLIENT UNBLOCK"


def test_client_pause_holds_writes(server):
    with redis.Redis(port=server.port, decode_responses=True) as r, Raw(server.port) as writer:
        assert writer.call("PING") == b"+PONG"
        assert r.client_pause(60_000, all=False)
        writer.send(encode("SET", "k", "v"))
        writer.quiet()
        assert r.get("k") is None
        assert r.client_unpause()
        assert writer.reply() == b"+OK" and r.get("k") == "v"


def test_client_reply_and_reset(server):
    with Raw(server.port) as raw:
        raw.send(encode("CLIENT", "REPLY", "OFF") + encode("SET", "k", 1))
        raw.send(encode("CLIENT", "REPLY", "SKIP") + encode("PING"))
        raw.send(encode("CLIENT", "REPLY", "ON") + encode("GET", "k"))
        assert raw.reply() == b"+OK" and raw.reply() == b"1"
        assert raw.call("MULTI") == b"+OK" and raw.call("RESET") == b"+RESET"
        assert raw.call("GET", "k") == b"1"
        assert raw.call("QUIT") == b"+OK" and raw.rest() == b""


def test_info(r):
    info = r.info()
    for field in ("redis_version", "kiln_version") if "kiln_version" in info else ("redis_version",):
        assert info[field]
    for field in ("used_memory", "connected_clients", "total_commands_processed", "role", "uptime_in_seconds"):
        assert field in info, field
    r.set("k", 1)
    assert r.info("keyspace")["db0"]["keys"] == 1
    assert r.info("commandstats")["cmdstat_set"]["calls"] >= 1
    assert "used_memory" not in r.info("server")


def test_config(r, configure):
    configure(maxmemory="100mb", maxmemory_policy="allkeys-lru")
    assert r.config_get("maxmemory*")["maxmemory"] == "104857600"
    got = r.config_get("maxmemory", "maxmemory-policy")
    assert got == {"maxmemory": "104857600", "maxmemory-policy": "allkeys-lru"}
    with pytest.raises(redis.ResponseError, match="CONFIG SET failed"):
        r.config_set("maxmemory", "many")
    with pytest.raises(redis.ResponseError, match="Unknown option"):
        r.config_set("no-such-directive", 1)
    assert r.config_get("maxmemory")["maxmemory"] == "104857600"


def test_slowlog_and_latency(r, configure):
    configure(slowlog_log_slower_than=0)
    assert r.slowlog_reset()
    r.set("slow", "v")
    commands = [entry["command"] for entry in r.slowlog_get()]
    assert "SET slow v" in [c.decode() if isinstance(c, bytes) else c for c in commands]
    assert r.slowlog_len() >= 1
    assert isinstance(r.latency_latest(), list)
    assert r.execute_command("LATENCY", "HISTOGRAM", "set")


def test_command_introspection(r):
    assert r.command_count() > 100
    assert r.command_getkeys("MSET", "a", 1, "b", 2) == ["a", "b"]
    assert "get" in [name.lower() for name in r.command_list()]
    get = r.command()["get"]
    assert get["arity"] == 2 and "readonly" in get["flags"]


def test_memory_and_object(r):
    r.set("k", "v" * 1_000)
    assert r.memory_usage("k") > 1_000 and r.memory_usage("none") is None
    assert r.object("idletime", "k") == 0 and r.object("refcount", "k") >= 1
    assert r.memory_stats()["keys.count"] == 1


def test_monitor(server):
    with redis.Redis(port=server.port, decode_responses=True) as r, r.monitor() as monitor:
        r.set("k", "v 1")
        heard = (monitor.next_command()["command"] for _ in range(50))
        assert any(command.upper().startswith("SET K") for command in heard)


def test_resp3_types(server):
    with redis.Redis(port=server.port, protocol=3) as r:
        r.hset("h", "f", "v")
        r.sadd("s", "m")
        r.zadd("z", {"m": 1.5})
        assert r.execute_command("HGETALL", "h") == {b"f": b"v"}
        assert set(r.execute_command("SMEMBERS", "s")) == {b"m"}
        assert r.execute_command("ZSCORE", "z", "m") == 1.5


def test_eviction_keeps_under_maxmemory(start):
    server = start("--maxmemory", "20mb", "--maxmemory-policy", "allkeys-lru")
    with redis.Redis(port=server.port, decode_responses=True) as r:
        with r.pipeline(transaction=False) as pipe:
            for i in range(40_000):
                pipe.set(f"key:{i}", "x" * 1_000)
            pipe.execute()
        # Clients' buffers count too, and shrink only when their timer finds them idle.
        eventually(lambda: r.info("memory")["used_memory"] <= 20 << 20, what="the eviction")
        assert 1_000 < r.dbsize() < 25_000
        assert r.info("stats")["evicted_keys"] > 0
        r.config_set("maxmemory-policy", "noeviction")
        r.config_set("maxmemory", 1)
        with pytest.raises(redis.exceptions.OutOfMemoryError):
            r.set("more", 1)
        assert r.dbsize() > 0


def test_authentication(start):
    server = start("--requirepass", "secret")
    once = Retry(NoBackoff(), 0)
    with redis.Redis(port=server.port, retry=once) as nobody:
        with pytest.raises(redis.AuthenticationError):
            nobody.get("k")
    with redis.Redis(port=server.port, password="wrong", retry=once) as wrong:
        with pytest.raises(redis.AuthenticationError):
            wrong.ping()
    for protocol in (2, 3):
        with redis.Redis(port=server.port, password="secret", protocol=protocol) as r:
            assert r.ping()
            r.set("k", protocol)
            assert r.get("k") == b"%d" % protocol


def test_unix_socket(start, tmp_path):
    server = start("--unixsocket", str(tmp_path / "kiln.sock"))
    with redis.Redis(unix_socket_path=str(tmp_path / "kiln.sock")) as r:
        r.set("k", "v")
    with redis.Redis(port=server.port) as r:
        assert r.get("k") == b"v"


def test_sigterm_ends_the_server(start):
    server = start()
    with redis.Redis(port=server.port) as r:
        assert r.ping()
        server.process.terminate()
        assert server.process.wait(30) == 0


def test_shutdown_command(start):
    server = start()
    with redis.Redis(port=server.port, retry=Retry(NoBackoff(), 0)) as r:
        r.shutdown(nosave=True)
    assert server.process.wait(30) == 0
