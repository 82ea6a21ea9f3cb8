"""hotkv-client, unchanged: the part of it that Redis has as well."""

import hotkv
import pytest


@pytest.fixture(params=[True, False], ids=["resp3", "resp2"])
def hot(server, request):
    url = f"hotkv://127.0.0.1:{server.port}/0"
    with hotkv.HotKV.from_url(url, resp3=request.param) as client:
        yield client


def test_connection(hot):
    assert hot.ping() in (True, b"PONG", "PONG")
    assert hot.echo("x") == b"x"
    assert hot.client_id() > 0
    assert hot.client_setname("acceptance") and hot.client_getname() == b"acceptance"
    seconds, microseconds = hot.time()
    assert seconds > 1_600_000_000 and 0 <= microseconds < 1_000_000
    assert hot.info("server")["redis_version"]
    assert hot.config_get("maxmemory") == {"maxmemory": "0"}
    assert hot.config_set({"maxmemory": "0"})
    assert hot.dbsize() == 0


def test_strings_and_keys(hot):
    assert hot.set("k", "v") and hot.get("k") == b"v"
    assert hot.setnx("k", "w") is False
    assert hot.mset({"a": 1, "b": 2}) and hot.mget(["a", "b", "c"]) == [b"1", b"2", None]
    assert hot.incr("a") == 2 and hot.incrby("a", 5) == 7 and hot.incrbyfloat("a", 0.5) == 7.5
    assert hot.append("k", "!") == 2 and hot.strlen("k") == 2 and hot.getrange("k", 0, 0) == b"v"
    assert hot.getdel("k") == b"v!" and hot.getset("k", "x") is None
    assert hot.setex("k", 100, "v") and 0 < hot.ttl("k") <= 100
    assert hot.persist("k") and hot.expire("k", 50) and hot.expiretime("k") > 0
    assert hot.exists("a", "b") == 2 and hot.type("a") == "string"
    assert hot.rename("a", "c") and hot.copy("c", "d") and hot.delete("c", "d") == 2
    assert sorted(hot.keys()) == [b"b", b"k"] and set(hot.scan_iter()) == {b"b", b"k"}


def test_bitmaps_and_hyperloglog(hot):
    assert hot.setbit("b", 3, 1) == 0 and hot.getbit("b", 3) == 1 and hot.bitcount("b") == 1
    assert hot.bitpos("b", 1) == 3 and hot.bitop("not", "n", "b") == 1
    assert hot.bitfield("f", [("SET", "u8", 0, 7), ("GET", "u8", 0)]) == [0, 7]
    assert hot.pfadd("p", 1, 2, 3) and hot.pfcount("p") == 3 and hot.pfmerge("q", "p")


def test_lists(hot):
    assert hot.rpush("l", 1, 2, 3) == 3 and hot.lrange("l", 0, -1) == [b"1", b"2", b"3"]
    assert hot.lpop("l") == b"1" and hot.rpop("l", 2) == [b"3", b"2"] and hot.llen("l") == 0
    hot.rpush("l", "a", "b", "a")
    assert hot.lindex("l", 0) == b"a" and hot.lset("l", 0, "z") and hot.lrem("l", 0, "a") == 1
    assert hot.linsert("l", "before", "b", "y") == 3 and hot.lpos("l", "b") == 2
    assert hot.rpoplpush("l", "m") == b"b" and hot.blpop("m", 1) == [b"m", b"b"]
    assert hot.blpop("none", 0.01) is None


def test_sets(hot):
    assert hot.sadd("s", "a", "b") == 2 and hot.sismember("s", "a") and hot.scard("s") == 2
    assert hot.smembers("s") == {b"a", b"b"} and hot.smismember("s", ["a", "x"]) == [True, False]
    hot.sadd("t", "b", "c")
    assert hot.sinter("s", "t") == {b"b"} and hot.sunion("s", "t") == {b"a", b"b", b"c"}
    assert hot.sdiff("s", "t") == {b"a"} and hot.sintercard(["s", "t"]) == 1
    assert hot.smove("s", "t", "a") and hot.srem("s", "b") == 1
    assert set(hot.sscan_iter("t")) == {b"a", b"b", b"c"} and hot.spop("t") in (b"a", b"b", b"c")


def test_hashes(hot):
    assert hot.hset("h", {"f": 1, "g": 2}) == 2 and hot.hget("h", "f") == b"1"
    assert hot.hgetall("h") == {b"f": b"1", b"g": b"2"} and hot.hmget("h", ["f", "x"]) == [b"1", None]
    assert hot.hincrby("h", "f", 2) == 3 and hot.hincrbyfloat("h", "f", 0.5) == 3.5
    assert hot.hexpire("h", 100, ["f"]) == [1] and 0 < hot.httl("h", ["f"])[0] <= 100
    assert hot.hpersist("h", ["f"]) == [1] and dict(hot.hscan_iter("h")) == hot.hgetall("h")
    assert hot.hdel("h", "f") == 1 and hot.hexists("h", "f") is False and hot.hlen("h") == 1


def test_sorted_sets(hot):
    assert hot.zadd("z", {"a": 1, "b": 2.5}) == 2 and hot.zscore("z", "b") == 2.5
    assert hot.zrange("z", 0, -1, withscores=True) == [(b"a", 1.0), (b"b", 2.5)]
    assert hot.zrank("z", "b") == 1 and hot.zcount("z", "-inf", "+inf") == 2
    assert hot.zincrby("z", 2, "a") == 3.0 and hot.zmscore("z", ["a", "x"]) == [3.0, None]
    assert hot.zrevrange("z", 0, 0) == [b"a"] and hot.zpopmin("z") == [(b"b", 2.5)]
    assert dict(hot.zscan_iter("z")) == {b"a": 3.0} and hot.zunionstore("u", ["z", "z"]) == 1
    assert hot.zrem("z", "a") == 1 and hot.bzpopmin(["u"], 1) == (b"u", b"a", 6.0)


def test_pipelines_and_transactions(hot):
    with hot.pipeline(transaction=False) as pipe:
        for i in range(1_000):
            pipe.set(f"k{i}", i)
        pipe.get("k999")
        assert pipe.execute()[-1] == b"999"
    with hot.pipeline() as pipe:
        pipe.incr("n")
        pipe.hgetall("none")
        assert pipe.execute() == [1, {}]

    def add_one(pipe):
        now = int(pipe.get("n"))
        pipe.multi()
        pipe.set("n", now + 1)

    hot.transaction(add_one, "n")
    assert hot.get("n") == b"2"
    with hot.pipeline() as pipe:
        pipe.watch("n")
        hot.incr("n")
        pipe.multi()
        pipe.set("n", 0)
        with pytest.raises(hotkv.exceptions.WatchError):
            pipe.execute()


def test_errors(hot):
    hot.set("k", "v")
    with pytest.raises(hotkv.exceptions.ResponseError, match="wrong kind of value"):
        hot.lpush("k", 1)
    with pytest.raises(hotkv.exceptions.ResponseError, match="not an integer"):
        hot.incr("k")
    with pytest.raises(hotkv.exceptions.ResponseError, match="unknown command"):
        hot.execute("NO.SUCH.COMMAND", "x")
