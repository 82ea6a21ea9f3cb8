"""Redis's vector sets through redis-py, and hostile vectors over the wire."""

import json
import math
import random
import struct
import threading

import pytest
import redis
from redis.commands.vectorset.commands import QuantizationOptions

from support import Raw

DIM = 32
# What a refused or small request may cost the server, whatever numbers it names.
REQUEST_COST_BYTES = 64 << 20
NOT_A_VECTOR = b"-ERR invalid vector specification"


def spell(words):
    """A test's name: its words, each cut short."""
    return " ".join(ascii(word)[:12] if isinstance(word, bytes) else str(word)[:20] for word in words)


def vector(seed, dim=DIM):
    """A unit vector, the same for the same seed."""
    draw = random.Random(seed)
    values = [draw.gauss(0, 1) for _ in range(dim)]
    length = math.sqrt(sum(value * value for value in values))
    return [value / length for value in values]


def blob(values):
    return struct.pack(f"<{len(values)}f", *values)


def fill(r, key, count, **options):
    """Adds `count` elements, named by their number, with a parity and a number to filter by."""
    with r.pipeline(transaction=False) as pipe:
        for i in range(count):
            attributes = {"n": i, "parity": "odd" if i % 2 else "even", "tags": [i % 3, i % 5]}
            pipe.vset().vadd(key, blob(vector(i)), str(i), attributes=attributes, **options)
        assert pipe.execute() == [1] * count


@pytest.mark.parametrize("quantization", list(QuantizationOptions))
def test_a_session(r, quantization):
    """What an application does with a vector set, in each way of storing it."""
    vset = r.vset()
    for i in range(100):
        added = vset.vadd(
            "v", vector(i), f"e{i}", quantization=quantization, ef=100, attributes={"n": i}
        )
        assert added == 1
    assert vset.vadd("v", vector(7), "e7", quantization=quantization) == 0
    assert vset.vcard("v") == 100 and vset.vdim("v") == DIM
    assert r.type("v") == "vectorset" and r.object("encoding", "v") == "raw"

    found = vset.vsim("v", vector(7), count=5, with_scores=True)
    scores = list(found.values())
    assert list(found)[0] == "e7" and len(found) == 5
    assert scores == sorted(scores, reverse=True) and scores[0] > 0.9
    assert vset.vsim("v", "e7", count=1) == ["e7"]
    assert vset.vsim("v", blob(vector(7)), count=1, truth=True, no_thread=True) == ["e7"]
    assert len(vset.vsim("v", vector(7), count=1_000)) == 100
    assert vset.vsim("none", vector(7)) in ([], {})

    info = vset.vinfo("v")
    assert info["size"] == 100 and info["vector-dim"] == DIM and info["hnsw-m"] == 16
    levels = vset.vlinks("v", "e7")
    assert levels and all(name.startswith("e") for level in levels for name in level)
    assert all(0 <= s <= 1 for level in vset.vlinks("v", "e7", with_scores=True) for s in level.values())

    assert vset.vrandmember("v").startswith("e") and len(set(vset.vrandmember("v", 50))) == 50
    assert len(vset.vrandmember("v", -150)) == 150 and vset.vrandmember("none") is None
    assert vset.vrem("v", "e7") == 1 and vset.vrem("v", "e7") == 0
    assert "e7" not in vset.vsim("v", vector(7), count=1_000)
    assert all(vset.vrem("v", f"e{i}") for i in range(100) if i != 7)
    assert r.exists("v") == 0


def test_vectors_come_back_as_they_were_given(r):
    vset = r.vset()
    given = [3.5, -0.25, 1e-8, 12345.678]
    vset.vadd("v", given, "a", quantization=QuantizationOptions.NOQUANT)
    for got, want in zip(vset.vemb("v", "a"), given):
        assert got == pytest.approx(want, rel=2e-7)
    raw = vset.vemb("v", "a", raw=True)
    assert raw["l2"] == pytest.approx(math.sqrt(sum(x * x for x in given)))
    assert vset.vemb("v", "b") is None and vset.vemb("none", "a") is None


def test_scores_and_order_are_exact(r):
    """Against arithmetic here: cosine similarity brought to 0..1, nearest first."""
    fill(r, "v", 300, quantization=QuantizationOptions.NOQUANT)
    query = vector(-1)
    want = {str(i): (1 + sum(a * b for a, b in zip(query, vector(i)))) / 2 for i in range(300)}
    best = sorted(want, key=want.get, reverse=True)[:10]
    for truth in (True, False):
        found = r.vset().vsim("v", query, count=10, with_scores=True, truth=truth, ef=300)
        assert list(found) == best
        assert all(found[name] == pytest.approx(want[name], abs=1e-6) for name in best)


def test_attributes_and_filters(r):
    vset = r.vset()
    fill(r, "v", 200)
    assert vset.vgetattr("v", "3")["parity"] == "odd"
    for expression, matches in [
        (".n < 10", lambda i: i < 10),
        ('.parity == "odd" and .n > 150', lambda i: i % 2 and i > 150),
        (".n in [3, 5, 199]", lambda i: i in (3, 5, 199)),
        ("4 in .tags", lambda i: i % 5 == 4),
        ("not (.n >= 1)", lambda i: i == 0),
        (".n % 50 == 0 or .n ** 2 == 81", lambda i: i % 50 == 0 or i == 9),
        (".missing > 1", lambda i: False),
    ]:
        want = {str(i) for i in range(200) if matches(i)}
        found = vset.vsim("v", vector(-1), count=200, filter=expression, filter_ef=10_000)
        assert set(found) == want, expression
    both = vset.vsim("v", "5", count=2, with_scores=True, with_attribs=True)
    attributes = both["5"]["attributes"]
    attributes = json.loads(attributes) if isinstance(attributes, str) else attributes
    assert attributes["n"] == 5 and both["5"]["score"] > 0.99
    assert vset.vsetattr("v", "5", {"n": -1}) == 1 and vset.vsim("v", "0", filter=".n < 0") == ["5"]
    assert vset.vsetattr("v", "5", "") == 1 and vset.vgetattr("v", "5") is None
    assert vset.vsetattr("v", "none", {"n": 1}) == 0 and vset.vgetattr("none", "x") is None
    with pytest.raises(redis.ResponseError, match="syntax error in FILTER expression near"):
        vset.vsim("v", "0", filter=".n ==")


def test_fewer_dimensions(r):
    vset = r.vset()
    for i in range(50):
        assert vset.vadd("v", vector(i), str(i), reduce_dim=16) == 1
    assert vset.vdim("v") == 16 and vset.vinfo("v")["projection-input-dim"] == DIM
    assert vset.vsim("v", vector(9), count=1) == ["9"]


def test_moves_of_a_set(r):
    """A vector set is a value like others to the commands that take any."""
    fill(r, "v", 20)
    assert r.rename("v", "w") and r.vset().vcard("w") == 20
    with r.pipeline() as pipe:
        pipe.vset().vadd("w", vector(99), "99")
        pipe.vset().vcard("w")
        assert pipe.execute() == [1, 21]
    assert r.expire("w", 100) and 0 < r.ttl("w") <= 100 and r.vset().vcard("w") == 21
    with pytest.raises(redis.ResponseError, match="wrong kind of value"):
        r.get("w")
    r.set("s", "text")
    with pytest.raises(redis.ResponseError, match="wrong kind of value"):
        r.vset().vadd("s", vector(1), "a")
    assert r.memory_usage("w") > 21 * DIM and r.delete("w") == 1


def test_many_writers_and_readers(server):
    """The same elements from eight connections, while others search: all counted once."""
    elements, rounds = 60, 4
    failures = []

    def guarded(work):
        def run():
            with redis.Redis(port=server.port, decode_responses=True) as client:
                try:
                    work(client.vset())
                except Exception as error:  # Told in the main thread.
                    failures.append(error)

        return run

    def write(seed):
        def work(vset):
            for turn in range(rounds):
                for i in random.Random(seed + turn).sample(range(elements), elements):
                    # The last round's vectors are the element's own; earlier ones move about.
                    own = i if turn == rounds - 1 else i + 1_000 * (seed + turn)
                    vset.vadd("v", blob(vector(own)), str(i))

        return work

    def search(vset):
        for i in range(200):
            found = vset.vsim("v", vector(i), count=elements)
            assert len(set(found)) == len(found) <= elements

    threads = [threading.Thread(target=guarded(write(seed))) for seed in range(8)]
    threads += [threading.Thread(target=guarded(search)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    with redis.Redis(port=server.port, decode_responses=True) as client:
        vset = client.vset()
        assert vset.vcard("v") == elements
        for i in range(elements):
            vset.vadd("v", blob(vector(i)), str(i))
            assert vset.vsim("v", vector(i), count=1, ef=200) == [str(i)]
        assert sorted(vset.vsim("v", vector(0), count=1_000, truth=True)) == sorted(
            str(i) for i in range(elements)
        )


def test_a_deleted_half_leaves_no_ghosts(r):
    fill(r, "v", 1_000)
    with r.pipeline(transaction=False) as pipe:
        for i in range(0, 1_000, 2):
            pipe.vset().vrem("v", str(i))
        assert pipe.execute() == [1] * 500
    found = r.vset().vsim("v", vector(-1), count=500, ef=1_000)
    assert len(found) == 500 and all(int(name) % 2 for name in found)


@pytest.fixture
def kept(server):
    """A connection, with a set of three that must be the same after the test."""
    with Raw(server.port) as raw:
        for name, values in [("a", (1, 0)), ("b", (0, 1)), ("c", (-1, 0))]:
            assert raw.call("VADD", "v", "VALUES", 2, *values, name, "NOQUANT") == b":1"
        assert raw.call("VSETATTR", "v", "a", '{"n":1}') == b":1"
        yield raw
        assert raw.call("VCARD", "v") == b":3" and raw.call("VDIM", "v") == b":2"
        assert raw.call("VSIM", "v", "VALUES", 2, 1, 0, "TRUTH") == [b"a", b"b", b"c"]
        assert raw.call("EXISTS", "new") == b":0"


NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize("key", ["v", "new"])
@pytest.mark.parametrize(
    "words",
    [
        ("FP32", b"", "x"),
        ("FP32", b"\x00" * 7, "x"),
        ("FP32", blob([1, NAN]), "x"),
        ("FP32", blob([1, INFINITY]), "x"),
        ("FP32", blob([-INFINITY, INFINITY]), "x"),
        ("VALUES", 2, 1, "nan", "x"),
        ("VALUES", 2, 1, "one", "x"),
        ("VALUES", 2, 1, "", "x"),
        ("VALUES", 0, "x"),
        ("VALUES", -1, 1, "x"),
        ("VALUES", "x", 1, "x"),
        ("VALUES", 3, 1, "x"),
        ("VALUES", 1 << 31, 1, "x"),
        ("VALUES", (1 << 32) + 2, 1, 0, "x"),
        ("VALUES", (1 << 63) - 1, 1, "x"),
        ("VALUES", 1 << 64, 1, "x"),
        ("REDUCE", 0, "VALUES", 2, 1, 0, "x"),
        ("REDUCE", -1, "VALUES", 2, 1, 0, "x"),
        ("REDUCE", "x", "VALUES", 2, 1, 0, "x"),
    ],
    ids=spell,
)
def test_what_is_no_vector(server, kept, key, words):
    before = server.rss_bytes()
    assert kept.call("VADD", key, *words, "NOQUANT") == NOT_A_VECTOR
    assert server.rss_bytes() - before < REQUEST_COST_BYTES


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("VADD", "v", "VALUES", 3, 1, 2, 3, "x", "NOQUANT"), b"Vector dimension mismatch - got 3"),
        (("VADD", "v", "VALUES", 2, 1, 2, "x", "Q8"), b"asked quantization mismatch"),
        (("VADD", "v", "VALUES", 2, 1, 2, "x", "NOQUANT", "M", 8), b"asked M value mismatch"),
        (("VADD", "new", "VALUES", 2, 1, 2, "x", "M", 1 << 40), b"invalid M"),
        (("VADD", "new", "VALUES", 2, 1, 2, "x", "M", 0), b"invalid M"),
        (("VADD", "new", "VALUES", 2, 1, 2, "x", "EF", 0), b"invalid EF"),
        (("VADD", "new", "VALUES", 2, 1, 2, "x", "EF", "many"), b"invalid EF"),
        (("VADD", "new", "VALUES", 2, 1, 2, "x", "SETATTR"), b"invalid option after element"),
        (("VADD", "new", "VALUES", 2, 1, 2, "x", "FAST"), b"invalid option after element"),
        (("VSIM", "v", "VALUES", 3, 1, 2, 3), b"ector dimension mismatch"),
        (("VSIM", "v", "ELE", "none"), b"element not found in set"),
        (("VSIM", "v", "ELE", "a", "COUNT", 0), b"invalid COUNT"),
        (("VSIM", "v", "ELE", "a", "COUNT", -1), b"invalid COUNT"),
        (("VSIM", "v", "ELE", "a", "EF", 0), b"invalid EF"),
        (("VSIM", "v", "ELE", "a", "FILTER-EF", 0), b"invalid FILTER-EF"),
        (("VSIM", "v", "ELE", "a", "EPSILON", 0), b"invalid EPSILON"),
        (("VSIM", "v", "ELE", "a", "EPSILON", "nan"), b"invalid EPSILON"),
        (("VSIM", "v", "ELE", "a", "FILTER", ""), b"syntax error in FILTER"),
        (("VSIM", "v", "ELE", "a", "FILTER", "(" * 100_000), b"syntax error in FILTER"),
        (("VSIM", "v", "ELE", "a", "FILTER", ".n == " + "[" * 100_000), b"syntax error in FILTER"),
        (("VSIM", "v", "ELE", "a", "LIMIT", 1), b"syntax error in VSIM command"),
    ],
    ids=lambda value: spell(value) if isinstance(value, tuple) else "",
)
def test_refusals(kept, words, error):
    reply = kept.call(*words)
    assert reply.startswith(b"-ERR ") and error in reply, reply


def test_numbers_that_are_only_large(server, kept):
    """COUNT and EF beyond the set's size cost what the set costs."""
    before = server.rss_bytes()
    assert kept.call("VSIM", "v", "ELE", "a", "COUNT", 1 << 31) == [b"a", b"b", b"c"]
    assert kept.call("VSIM", "v", "ELE", "a", "EF", 1_000_000) == [b"a", b"b", b"c"]
    assert kept.call("VSIM", "v", "ELE", "a", "FILTER", ".n > 0", "FILTER-EF", 1 << 40) == [b"a"]
    assert server.rss_bytes() - before < REQUEST_COST_BYTES


def test_deep_expressions_and_attributes(kept):
    deep = "(" * 5_000 + ".n == 1" + ")" * 5_000
    reply = kept.call("VSIM", "v", "ELE", "a", "FILTER", deep)
    assert reply == [b"a"] or reply.startswith(b"-ERR syntax error in FILTER")
    chain = ".n == 1" + " and .n == 1" * 5_000
    assert kept.call("VSIM", "v", "ELE", "a", "FILTER", chain) == [b"a"]
    for text in ["[" * 200_000, '{"n":' * 200_000, '{"n":"\\ud800"}', "\x00", '{"n":1e999}', "{"]:
        assert kept.call("VSETATTR", "v", "b", text) == b":1"
        assert kept.call("VGETATTR", "v", "b") == text.encode()
        assert kept.call("VSIM", "v", "ELE", "a", "FILTER", ".n == 1") == [b"a"]


def test_vectors_of_extreme_size(server):
    """Zero and tiny and huge components: scores are numbers, and each finds itself."""
    with Raw(server.port) as raw:
        for name, values in [("tiny", (1e-30, 2e-30)), ("huge", (3e38, -1e38)), ("one", (0, -1))]:
            assert raw.call("VADD", "x", "FP32", blob(values), name, "NOQUANT") == b":1"
            found = raw.call("VSIM", "x", "FP32", blob(values), "COUNT", 1, "WITHSCORES")
            assert found[0] == name.encode() and float(found[1]) == pytest.approx(1, abs=1e-6)
        assert raw.call("VADD", "x", "FP32", blob((0, 0)), "zero", "NOQUANT") == b":1"
        scores = raw.call("VSIM", "x", "ELE", "zero", "WITHSCORES")[1::2]
        assert len(scores) == 4 and all(float(score) == pytest.approx(0.5) for score in scores)


def test_the_widest_vector(server):
    with Raw(server.port) as raw:
        widest = blob([1.0] * 32_768)
        assert raw.call("VADD", "w", "FP32", widest, "a") == b":1"
        assert raw.call("VSIM", "w", "FP32", widest) == [b"a"]
        reply = raw.call("VADD", "w2", "FP32", blob([1.0] * (1 << 20)), "a")
        assert reply.startswith(b"-ERR"), reply
