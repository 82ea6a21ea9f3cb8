"""HotKV's vector indexes: hotkv-client's own methods, and its stores for two frameworks."""

import math
import struct
import zlib

import hotkv
import pytest
from hotkv.integrations.langchain import HotKVVectorStore as LangChainStore
from hotkv.integrations.llama_index import HotKVVectorStore as LlamaIndexStore
from langchain_core.embeddings import Embeddings
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import (
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)

from support import Raw

DIM = 64
TEXTS = [
    "a hot key value store keeps data in memory",
    "cats are small mammals that sleep all day",
    "dogs are mammals that like to run",
    "the memory of a server is measured in bytes",
]


def embed(text):
    """A bag of words, each at a place that its checksum chooses: shared words are nearness."""
    counts = [0.0] * DIM
    for word in text.lower().split():
        counts[zlib.crc32(word.encode()) % DIM] += 1.0
    length = math.sqrt(sum(count * count for count in counts)) or 1.0
    return [count / length for count in counts]


class WordEmbeddings(Embeddings):
    """As LangChain calls it."""

    def embed_documents(self, texts):
        return [embed(text) for text in texts]

    def embed_query(self, text):
        return embed(text)


class WordEmbedding(BaseEmbedding):
    """As LlamaIndex calls it."""

    def _get_text_embedding(self, text):
        return embed(text)

    def _get_query_embedding(self, query):
        return embed(query)

    async def _aget_query_embedding(self, query):
        return embed(query)


@pytest.fixture(params=[True, False], ids=["resp3", "resp2"])
def hot(server, request):
    url = f"hotkv://127.0.0.1:{server.port}/0"
    with hotkv.HotKV.from_url(url, resp3=request.param) as client:
        yield client


def test_an_index(hot):
    assert hot.vsim_createindex("i", 3, m=8, ef_construction=50, ef_search=20)
    with pytest.raises(hotkv.exceptions.ResponseError, match="already exists"):
        hot.vsim_createindex("i", 3)
    assert hot.vsim_set("i", "x", [1, 0, 0]) is True
    assert hot.vsim_set("i", "y", [0, 1, 0]) is True
    assert hot.vsim_set("i", "y", [0, 0.5, 0]) is False
    assert hot.vsim_get("i", "y") == [0, 0.5, 0] and hot.vsim_get("i", "none") is None
    found = hot.vsim_search("i", 5, [1, 0.1, 0])
    assert [name for name, _ in found] == [b"x", b"y"]
    assert found[0][1] == pytest.approx(1 - 1 / math.sqrt(1.01), abs=1e-6)
    assert [name for name, _ in hot.vsim_search("i", 1, [0, 1, 0], ef=100)] == [b"y"]
    info = hot.vsim_info("i")
    assert info["vectors"] == 2 and info["metric"] in ("cosine", b"cosine") and info["dims"] == 3
    assert hot.vsim_info() == [b"i"]
    assert hot.vsim_del("i", "x") is True and hot.vsim_del("i", "x") is False
    assert [name for name, _ in hot.vsim_search("i", 5, [1, 0, 0])] == [b"y"]
    assert hot.vsim_dropindex("i") and hot.vsim_info() == []
    with pytest.raises(hotkv.exceptions.ResponseError, match="not found"):
        hot.vsim_search("i", 1, [1, 0, 0])


@pytest.mark.parametrize(
    ("metric", "distances"),
    [
        ("cosine", [0, 0.2, 1]),
        ("l2", [1, math.sqrt(4**2 + 4.5**2), math.sqrt(5)]),
        ("euclidean", [1, math.sqrt(4**2 + 4.5**2), math.sqrt(5)]),
        ("ip", [-1, -11, 1]),
        ("dot", [-1, -11, 1]),
    ],
)
def test_metrics(hot, metric, distances):
    """From (2, 0): 1 - cosine, the Euclidean distance, 1 - the inner product."""
    hot.vsim_createindex("i", 2, metric=metric)
    vectors = {b"a": [1, 0], b"b": [6, 4.5], b"c": [0, 1]}
    for name, vector in vectors.items():
        hot.vsim_set("i", name, vector)
    found = hot.vsim_search("i", 3, [2, 0])
    want = sorted(zip(distances, vectors))
    assert [name for name, _ in found] == [name for _, name in want]
    assert [got for _, got in found] == pytest.approx([each for each, _ in want], abs=1e-6)


def test_indexes_are_no_keys(hot):
    """They share no name with keys, and outlive the deletion of one."""
    hot.vsim_createindex("same", 2)
    hot.set("same", "text")
    hot.vsim_set("same", "a", [1, 0])
    assert hot.get("same") == b"text" and hot.keys() == [b"same"] and hot.dbsize() == 1
    assert hot.delete("same") == 1 and hot.vsim_get("same", "a") == [1, 0]


def test_search_by_tags(hot):
    hot.vsim_createindex("i", 2)
    for name, tags in [("a", ("red", "big")), ("b", ("red",)), ("c", ("blue", "big"))]:
        hot.set(name, "value")
        hot.execute("TAG.SET", name, *tags)
        hot.vsim_set("i", name, [1, len(tags)])

    def find(*tags, **options):
        found = hot.vsim_search("i", 10, [1, 0], filter_tags=tags, **options)
        return sorted(name for name, _ in found)

    assert find("red") == [b"a", b"b"] and find("red", "big") == [b"a"]
    assert find("big", ef=50) == [b"a", b"c"] and find("green") == []


def test_snapshots_are_blobs(hot):
    blob = bytes(range(256)) * 40
    assert hot.vsim_load("s") is None and hot.vsim_drop("s") is False
    assert hot.vsim_save("s", blob) == len(blob) and hot.vsim_load("s") == blob
    assert hot.vsim_list() == [b"s"] and hot.vsim_drop("s") is True and hot.vsim_list() == []


def test_a_pipeline_of_vectors(hot):
    hot.vsim_createindex("i", DIM)
    with hot.pipeline(transaction=False) as pipe:
        for text in TEXTS:
            pipe.vsim_set("i", text, embed(text))
        assert pipe.execute() == [True] * len(TEXTS)
    with hot.pipeline() as pipe:
        pipe.vsim_search("i", 1, embed("sleep all day"))
        pipe.vsim_del("i", TEXTS[1])
        found, deleted = pipe.execute()
    assert found[0][0] == TEXTS[1].encode() and deleted is True


def test_langchain_vector_store(hot):
    store = LangChainStore.from_texts(
        TEXTS,
        WordEmbeddings(),
        [{"page": page} for page in range(len(TEXTS))],
        ids=[f"id{page}" for page in range(len(TEXTS))],
        client=hot,
        index_name="docs",
    )
    (best, distance), *_ = store.similarity_search_with_score(TEXTS[1], k=2)
    assert best.page_content == TEXTS[1] and best.metadata == {"page": 1} and best.id == "id1"
    assert distance == pytest.approx(0, abs=1e-6)
    names = [doc.id for doc in store.similarity_search("mammals that run", k=2)]
    assert names == ["id2", "id1"]
    assert store.similarity_search_by_vector(embed(TEXTS[3]), k=1)[0].id == "id3"
    # Another store on the same index finds what is there, and adds to it.
    other = LangChainStore(hot, WordEmbeddings(), "docs", dims=DIM)
    other.add_texts(["birds sing"], ids=["id4"])
    assert store.as_retriever(search_kwargs={"k": 1}).invoke("birds sing")[0].id == "id4"
    assert store.delete(["id1"]) is True and store.delete(["id1"]) is False
    assert "id1" not in [doc.id for doc in store.similarity_search(TEXTS[1], k=10)]


def nodes():
    """One node for each text; the first two are of one document."""
    for page, text in enumerate(TEXTS):
        node = TextNode(id_=f"n{page}", text=text, metadata={"page": page}, embedding=embed(text))
        source = RelatedNodeInfo(node_id="doc0" if page < 2 else f"doc{page}")
        node.relationships[NodeRelationship.SOURCE] = source
        yield node


def test_llama_index_vector_store(hot):
    store = LlamaIndexStore(hot, "nodes", dims=DIM)
    assert store.add(list(nodes())) == ["n0", "n1", "n2", "n3"]

    def find(text, count, filters=None):
        query = VectorStoreQuery(
            query_embedding=embed(text), similarity_top_k=count, filters=filters
        )
        return store.query(query)

    result = find(TEXTS[2], 2)
    assert result.ids == ["n2", "n1"] and result.nodes[0].get_content() == TEXTS[2]
    assert result.similarities[0] == pytest.approx(0, abs=1e-6)
    late = MetadataFilter(key="page", value=2, operator=FilterOperator.GTE)
    assert sorted(find(TEXTS[1], 4, MetadataFilters(filters=[late])).ids) == ["n2", "n3"]
    store.delete("doc0")
    assert sorted(find(TEXTS[1], 4).ids) == ["n2", "n3"]


def test_llama_index_over_the_store(hot):
    store = LlamaIndexStore(hot, "whole")
    storage = StorageContext.from_defaults(vector_store=store)
    index = VectorStoreIndex(list(nodes()), storage_context=storage, embed_model=WordEmbedding())
    found = index.as_retriever(similarity_top_k=1).retrieve("data in memory")
    assert found[0].node.get_content() == TEXTS[0]
    index.delete_ref_doc("doc0")
    found = index.as_retriever(similarity_top_k=4).retrieve("data in memory")
    assert sorted(each.node.node_id for each in found) == ["n2", "n3"]


@pytest.fixture
def kept(server):
    """A connection, with an index of one vector that must be the same after the test."""
    with Raw(server.port) as raw:
        assert raw.call("VSIM.CREATEINDEX", "i", 2) == b"+OK"
        assert raw.call("VSIM.SET", "i", "a", 1, 0) == b":1"
        yield raw
        assert raw.call("VSIM.INFO") == [b"i"]
        assert raw.call("VSIM.GET", "i", "a") == [b"1", b"0"]
        assert raw.call("VSIM.SEARCH", "i", 5, 1, 0) == [b"a", b"0"]


NAN = struct.pack("<2f", 1, math.nan)
INFINITY = struct.pack("<2f", -math.inf, 0)


@pytest.mark.parametrize(
    "words",
    [
        ("CREATEINDEX", "i", 2),
        ("CREATEINDEX", "j", 0),
        ("CREATEINDEX", "j", -1),
        ("CREATEINDEX", "j", 65_537),
        ("CREATEINDEX", "j", 1 << 63),
        ("CREATEINDEX", "j", "wide"),
        ("CREATEINDEX", "j", 2, "METRIC", "taxicab"),
        ("CREATEINDEX", "j", 2, "METRIC"),
        ("CREATEINDEX", "j", 2, "M", 1 << 40),
        ("CREATEINDEX", "j", 2, "M", 0),
        ("CREATEINDEX", "j", 2, "EF_CONSTRUCTION", 0),
        ("CREATEINDEX", "j", 2, "EF_SEARCH", 0),
        ("CREATEINDEX", "j", 2, "COLOR", "red"),
        ("SET", "none", "a", 1, 0),
        ("SET", "i", "a", 1),
        ("SET", "i", "a", 1, 0, 0),
        ("SET", "i", "a", 1, "nan"),
        ("SET", "i", "a", 1, "inf"),
        ("SET", "i", "a", 1, ""),
        ("SET", "i", "a", "FP32", NAN),
        ("SET", "i", "a", "FP32", INFINITY),
        ("SET", "i", "a", "FP32", b"\x00" * 7),
        ("SET", "i", "a", "FP32", b"\x00" * 12),
        ("GET", "none", "a"),
        ("DEL", "none", "a"),
        ("INFO", "none"),
        ("DROPINDEX", "none"),
        ("SEARCH", "none", 1, 1, 0),
        ("SEARCH", "i", 0, 1, 0),
        ("SEARCH", "i", -1, 1, 0),
        ("SEARCH", "i", 1, 1),
        ("SEARCH", "i", 1, 1, 0, 0),
        ("SEARCH", "i", 1, 1, "nan"),
        ("SEARCH", "i", 1, "FP32", NAN),
        ("SEARCH", "i", 1, 1, 0, "EF", 0),
        ("SEARCH", "i", 1, 1, 0, "EF", "many"),
    ],
    ids=lambda words: " ".join(ascii(word)[:12] for word in words),
)
def test_refusals(kept, words):
    """An error, and nothing has changed."""
    reply = kept.call(f"VSIM.{words[0]}", *words[1:])
    assert isinstance(reply, bytes) and reply.startswith(b"-ERR "), reply


def test_binary_vectors(kept):
    """A blob says in 8 bytes what two texts say, and means the same."""
    blob = struct.pack("<2f", 0.1, -2.5)
    assert kept.call("VSIM.SET", "i", "b", "FP32", blob) == b":1"
    assert kept.call("VSIM.GET", "i", "b") == [b"0.1", b"-2.5"]
    found = kept.call("VSIM.SEARCH", "i", 1, "FP32", blob)
    assert found[0] == b"b" and float(found[1]) == pytest.approx(0, abs=1e-6)
    assert kept.call("VSIM.DEL", "i", "b") == b":1"


def test_numbers_that_are_only_large(server, kept):
    before = server.rss_bytes()
    assert kept.call("VSIM.SEARCH", "i", 1 << 31, 1, 0) == [b"a", b"0"]
    assert kept.call("VSIM.CREATEINDEX", "wide", 65_536) == b"+OK"
    assert kept.call("VSIM.DROPINDEX", "wide") == b"+OK"
    assert server.rss_bytes() - before < 64 << 20
