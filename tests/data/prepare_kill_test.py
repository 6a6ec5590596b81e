"""llm-data prepare is killed again and again: the next run goes on, and the dataset is the one of a run in peace."""
import hashlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = sys.argv.pop(1)
OUTPUTS = ["manifest.json", "train.bin", "train.idx", "validation.bin", "validation.idx", "report.json",
           "rejects.jsonl"]


def write_corpus(path, documents):
    words = random.Random(7)
    vocabulary = ["".join(words.choices("abcdefghijklmnop", k=words.randint(2, 9))) for _ in range(3000)]
    texts = []
    with open(path, "w", encoding="utf-8") as file:
        for number in range(documents):
            if number % 10 == 9:  # equal, or nearly, to one before
                text = words.choice(texts) + (" again" if number % 20 == 9 else "")
            else:
                text = " ".join(words.choices(vocabulary, k=words.randint(20, 120)))
            texts.append(text)
            file.write(json.dumps({"id": f"d{number}", "text": text}) + "\n")
            if number % 500 == 3:
                file.write("{broken\n")


def specification(folder, output, workers):
    return {
        "name": "kills", "output": str(output), "memory": "1G", "threads": 2, "workers": workers,
        "sources": [{"name": "in", "paths": [str(folder / "in")], "text_field": "text", "id_field": "id",
                     "format": "auto"}],
        "read": {"invalid_utf8": "replace", "truncated": "refuse", "document_bytes_max": "64M", "giant": "split"},
        "normalize": {"form": "NFC", "controls": "remove", "whitespace": "keep"},
        "exact_dedup": {"units": ["document"], "bytes_min": 40},
        "near_dedup": {"parity": "none", "bands": 14, "rows": 8, "shingle_words": 5, "seed": 1},
        "tokenizer": "byte", "validation_fraction": 0.05,
    }


class Killed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="llm-kill-")
        cls.folder = pathlib.Path(cls.scratch.name)
        (cls.folder / "in").mkdir()
        write_corpus(cls.folder / "in" / "a.jsonl", 6000)
        subprocess.run(["gzip", "-k", cls.folder / "in" / "a.jsonl"], check=True)
        os.rename(cls.folder / "in" / "a.jsonl.gz", cls.folder / "in" / "b.jsonl.gz")
        cls.peaceful = cls.finish("peace", 1)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    @classmethod
    def start(cls, name, workers):
        output = cls.folder / name
        spec = cls.folder / f"{name}.json"
        spec.write_text(json.dumps(specification(cls.folder, output, workers)))
        return subprocess.Popen([PROGRAM, "prepare", f"--spec={spec}", "--task-bytes=600000", "--segment-bytes=200000"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    @classmethod
    def finish(cls, name, workers):
        work = cls.folder / name / ".work"
        if work.exists() or not (cls.folder / name / "manifest.json").exists():
            process = cls.start(name, workers)
            _, errors = process.communicate(timeout=120)
            if process.returncode != 0:
                raise AssertionError(errors)
        digest = hashlib.sha256()
        for output in OUTPUTS:
            digest.update((cls.folder / name / output).read_bytes())
        if work.exists():
            raise AssertionError("the work folder is still there")
        return digest.hexdigest()

    def files(self, name):
        # Folders come and go under its eyes: os.walk passes over them.
        return sum(len(files) for _, _, files in os.walk(self.folder / name / ".work"))

    def kill_when_it_has_made(self, name, files, workers, victim=None):
        """False if it ended before."""
        process = self.start(name, workers)
        try:
            while self.files(name) < files:
                if process.poll() is not None:
                    return False
            os.kill(victim(process) if victim else process.pid, signal.SIGKILL)
            _, errors = process.communicate(timeout=120)
            self.errors = errors
            return process.returncode != 0
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()

    def children(self, process):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            listed = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            if listed:
                return int(listed[0])
        raise AssertionError("no worker process was started")

    def test_a_run_that_is_killed_many_times_ends_as_one_in_peace(self):
        kills = 0
        for files in [2, 6, 12, 20, 30, 45, 60, 80, 100, 140, 200]:
            if not self.kill_when_it_has_made("kills", files, 1):
                break
            kills += 1
        self.assertGreaterEqual(kills, 6)
        self.assertEqual(self.finish("kills", 1), self.peaceful)

    def test_several_processes_make_the_same(self):
        self.assertEqual(self.finish("several", 3), self.peaceful)

    def test_a_worker_process_that_is_killed_ends_the_run_with_the_reason(self):
        self.assertTrue(self.kill_when_it_has_made("worker", 12, 2, victim=self.children))
        self.assertIn("was killed by signal 9", self.errors)
        self.assertIn("run the same command again", self.errors)
        self.assertEqual(self.finish("worker", 2), self.peaceful)


if __name__ == "__main__":
    unittest.main()
