#!/usr/bin/env python3
"""datatrove's and rensa's MinHash deduplication on the same texts, and how many planted copies clusters hold.

usage: dedup_peer.py CORPUS.jsonl [--peer datatrove|rensa] [--megabytes N] [--clusters FILE]
       dedup_peer.py CORPUS.jsonl --recall CLUSTERS.jsonl

Runs in an environment with bench/pipeline/requirements.txt installed. Both with 14 bands of 8 rows and 5-word shingles,
texts in memory, one thread, CPU seconds. --recall reads clusters as llm-bench-dedup --clusters writes them and counts
the documents whose id ends in @exactN or @nearN that share a cluster with the document they were copied from. The last
line is JSON.
"""

import argparse
import collections
import json
import re
import struct
import tempfile
import time


def read_documents(path: str, megabytes: float) -> tuple[list[dict], int]:
    documents, size = [], 0
    with open(path, encoding="utf-8") as file:
        for line in file:
            documents.append(json.loads(line))
            size += len(documents[-1]["text"].encode())
            if megabytes and size > megabytes * 1e6:
                break
    return documents, size


def run_datatrove(documents: list[dict], clusters_path: str | None) -> dict:
    from datatrove.data import Document
    from datatrove.pipeline.dedup.minhash import (MinhashConfig, MinhashDedupBuckets, MinhashDedupCluster,
                                                  MinhashDedupFilter, MinhashDedupSignature)
    from datatrove.utils.hashing import HashConfig
    from loguru import logger
    logger.remove()
    config = MinhashConfig(hash_config=HashConfig(precision=64))
    with tempfile.TemporaryDirectory() as folder:
        signatures = MinhashDedupSignature(folder + "/sig", config=config)
        signatures.get_shingles("the first text loads the rules and is not counted")
        start = time.process_time()
        signatures.run((Document(text=d["text"], id=d["id"]) for d in documents), 0, 1)
        for bucket in range(config.num_buckets):
            MinhashDedupBuckets(folder + "/sig", folder + "/buk", config=config).run(None, bucket, config.num_buckets)
        MinhashDedupCluster(folder + "/buk", folder + "/clu", config=config, save_cluster_id=True,
                            save_cluster_size=True).run(None, 0, 1)
        chosen = MinhashDedupFilter(folder + "/clu", load_cluster_ids=True)
        kept = {d.id for d in chosen.run((Document(text=d["text"], id=d["id"]) for d in documents), 0, 1)}
        seconds = time.process_time() - start
        if clusters_path:
            write_datatrove_clusters(documents, kept, folder + "/clu/000000.clusters", clusters_path)
    return {"cpu_s": seconds, "removed": len(documents) - len(kept)}


def write_datatrove_clusters(documents: list[dict], kept: set[str], source: str, path: str) -> None:
    clusters = collections.defaultdict(list)
    with open(source, "rb") as file:
        for document, cluster in struct.iter_unpack("<II", file.read()):
            clusters[cluster].append(documents[document]["id"])
    with open(path, "w", encoding="utf-8") as file:
        for ids in clusters.values():
            file.write(json.dumps({"kept": [i for i in ids if i in kept], "ids": ids}) + "\n")


def run_rensa(documents: list[dict]) -> dict:
    import rensa
    start = time.process_time()
    index = rensa.RMinHashLSH(threshold=0.72, num_perm=112, num_bands=14)
    duplicates = 0
    for number, document in enumerate(documents):
        words = document["text"].lower().split()
        signature = rensa.RMinHash(num_perm=112, seed=1)
        signature.update([" ".join(words[i:i + 5]) for i in range(max(1, len(words) - 4))])
        duplicates += bool(index.query(signature))
        index.insert(number, signature)
    return {"cpu_s": time.process_time() - start, "removed": duplicates}


def recall(documents: list[dict], path: str) -> dict:
    texts = {d["id"]: d["text"] for d in documents}
    cluster_of, sizes = {}, []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file):
            ids = json.loads(line)["ids"]
            sizes.append(len(ids))
            cluster_of.update({i: number for i in ids})
    out = {"clusters": len(sizes), "clustered": sum(sizes), "removed": sum(sizes) - len(sizes),
           "largest": max(sizes, default=0)}
    for kind in ("exact", "near"):
        counts = collections.Counter()
        for copy, text in texts.items():
            match = re.search(rf"@{kind}\d+$", copy)
            if not match or copy[:match.start()] not in texts:
                continue
            found = copy in cluster_of and cluster_of[copy] == cluster_of.get(copy[:match.start()])
            counts["planted"] += 1
            counts["found"] += found
            counts["missed_of_50_words"] += not found and len(text.split()) >= 50
        out[kind] = dict(counts)
    return out


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus")
    parser.add_argument("--peer", choices=("datatrove", "rensa"), default="rensa")
    parser.add_argument("--megabytes", type=float, default=0)
    parser.add_argument("--clusters")
    parser.add_argument("--recall")
    options = parser.parse_args()
    documents, size = read_documents(options.corpus, options.megabytes)
    if options.recall:
        print(json.dumps(recall(documents, options.recall)))
        return
    row = run_datatrove(documents, options.clusters) if options.peer == "datatrove" else run_rensa(documents)
    print(json.dumps({"peer": options.peer, "MB": size / 1e6, "MB_per_s": size / 1e6 / row["cpu_s"], **row}))


if __name__ == "__main__":
    main()
