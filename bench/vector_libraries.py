"""Measures one vector library from PyPI, for `kiln-bench vector-library`.

Builds an index on one thread, searches in batches on one thread, and prints a line of JSON: build
rate, memory, and for each effort recall@10 and CPU time per query, of several rounds the least.
"""

import argparse
import json
import pathlib
import time

import numpy

COUNT = 10


class Hnswlib:
    def __init__(self, dim, rows, m, ef_construction):
        import hnswlib

        self.index = hnswlib.Index(space="cosine", dim=dim)
        self.index.init_index(max_elements=rows, M=m, ef_construction=ef_construction)

    def build(self, base):
        self.index.add_items(base, num_threads=1)

    def search(self, queries, ef):
        self.index.set_ef(ef)
        return self.index.knn_query(queries, k=COUNT, num_threads=1)[0]


class Usearch:
    def __init__(self, dim, rows, m, ef_construction):
        from usearch.index import Index

        self.index = Index(
            ndim=dim, metric="cos", dtype="f32", connectivity=m, expansion_add=ef_construction
        )

    def build(self, base):
        self.index.add(numpy.arange(len(base)), base, threads=1)

    def search(self, queries, ef):
        self.index.expansion_search = ef
        return self.index.search(queries, COUNT, threads=1).keys


LIBRARIES = {"hnswlib": Hnswlib, "usearch": Usearch}


def resident_bytes():
    status = pathlib.Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", choices=LIBRARIES)
    parser.add_argument("base")
    parser.add_argument("queries")
    parser.add_argument("truth")
    parser.add_argument("--m", type=int, required=True)
    parser.add_argument("--ef-construction", type=int, required=True)
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--efs", type=int, nargs="+", required=True)
    args = parser.parse_args()

    base, queries = numpy.load(args.base), numpy.load(args.queries)
    truth = numpy.load(args.truth)[:, :COUNT]
    library = LIBRARIES[args.library](base.shape[1], len(base), args.m, args.ef_construction)
    resident, before = resident_bytes(), time.process_time()
    library.build(base)
    build = time.process_time() - before
    grown = resident_bytes() - resident

    points = []
    for ef in args.efs:
        least = float("inf")
        for _ in range(args.rounds):
            before = time.process_time()
            found = library.search(queries, ef)
            least = min(least, time.process_time() - before)
        hits = sum(len(set(a.tolist()) & set(b.tolist())) for a, b in zip(found, truth))
        recall = hits / truth.size
        cpu_us = least / len(queries) * 1e6
        points.append({"ef": ef, "recall_at_10": recall, "cpu_us": cpu_us})
    print(
        json.dumps(
            {
                "engine": f"{args.library} float32",
                "vectors_per_cpu_s": len(base) / build,
                "bytes_per_vector": grown / len(base),
                "points": points,
            }
        )
    )


main()
