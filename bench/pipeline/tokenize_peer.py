#!/usr/bin/env python3
"""Hugging Face's tokenizers and tiktoken on the same texts: how fast, and which ids.

usage: tokenize_peer.py encode CORPUS.jsonl TOKENIZER.json [--compare OURS]
       tokenize_peer.py tiktoken CORPUS.jsonl TOKENIZER.json [--compare OURS]   (a vocabulary with GPT-2's pattern)
       tokenize_peer.py train CORPUS.jsonl OUT.json [--compare OURS]

Runs in an environment with bench/pipeline/requirements.txt installed. One thread, user CPU seconds. --compare reads
what llm-bench-tokenize wrote, encode --write-ids or train --out, and says whether all ids are the same, or OUT.json is
byte for byte. The last line is JSON.
"""

import argparse
import array
import json
import os
import resource

os.environ.update(RAYON_NUM_THREADS="1", TOKENIZERS_PARALLELISM="true")

import tiktoken  # noqa: E402  (the threads are set before)
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers  # noqa: E402

END = "<|endoftext|>"
VOCABULARY_SIZE = 32000
BATCH = 1000
GPT2_REGEX = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""


def texts_of(path: str):
    with open(path, encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)["text"]


def cpu_seconds() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def peak_megabytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def huggingface_ids(path: str, texts: list[str]) -> list[list[int]]:
    tokenizer = Tokenizer.from_file(path)
    tokenizer.encode_special_tokens = True  # text is text
    ids = []
    for start in range(0, len(texts), BATCH):
        batch = tokenizer.encode_batch_fast(texts[start:start + BATCH], add_special_tokens=False)
        ids += [encoding.ids for encoding in batch]
    return ids


def byte_of_character() -> dict[str, int]:
    """GPT-2's alphabet: a printable byte is itself, the others follow from U+0100 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}


def tiktoken_encoding(path: str) -> tiktoken.Encoding:
    with open(path, encoding="utf-8") as file:
        vocabulary = json.load(file)["model"]["vocab"]
    end = vocabulary.pop(END)
    alphabet = byte_of_character()
    ranks = {bytes(alphabet[c] for c in token): rank for token, rank in vocabulary.items()}
    return tiktoken.Encoding("corpus", pat_str=GPT2_REGEX, mergeable_ranks=ranks, special_tokens={END: end})


def compare(ids: list[list[int]], path: str, end: int, vocabulary_size: int) -> bool:
    theirs = array.array("H" if vocabulary_size < 65500 else "i")
    for document in ids:
        if document:
            theirs.extend(document + [end])
    with open(path, "rb") as file:
        return file.read() == theirs.tobytes()


def encode(args: argparse.Namespace) -> dict:
    texts = list(texts_of(args.corpus))
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    encoding = tiktoken_encoding(args.file) if args.what == "tiktoken" else None
    start = cpu_seconds()
    if encoding:
        ids = [encoding.encode_ordinary(text) for text in texts]
    else:
        ids = huggingface_ids(args.file, texts)
    seconds = cpu_seconds() - start
    report = {"what": args.what, "MB": megabytes, "tokens": sum(map(len, ids)), "cpu_s": seconds,
              "MB_per_s": megabytes / seconds, "peak_rss_MB": peak_megabytes()}
    if args.compare:
        tokenizer = Tokenizer.from_file(args.file)
        report["same_ids"] = compare(ids, args.compare, tokenizer.token_to_id(END), tokenizer.get_vocab_size())
    return report


def train(args: argparse.Namespace) -> dict:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY_SIZE, special_tokens=[END], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    start = cpu_seconds()
    tokenizer.train_from_iterator(texts_of(args.corpus), trainer)
    report = {"what": "train", "cpu_s": cpu_seconds() - start, "peak_rss_MB": peak_megabytes()}
    tokenizer.save(args.file)
    if args.compare:
        with open(args.file, "rb") as theirs, open(args.compare, "rb") as ours:
            report["same_tokenizer"] = theirs.read() == ours.read()
    return report


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("encode", "tiktoken", "train"))
    parser.add_argument("corpus")
    parser.add_argument("file")
    parser.add_argument("--compare")
    args = parser.parse_args()
    print(json.dumps(train(args) if args.what == "train" else encode(args)))


main()
