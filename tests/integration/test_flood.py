#!/usr/bin/env python3
"""A trainer that prints 100 MB a second: it holds up neither its lease nor its steps, and its reader misses nothing
without being told."""

import re
import signal
import subprocess
import threading
import unittest

from cluster import PATIENCE_SECONDS, Cluster
from cluster_test_case import SUCCEEDED, ClusterTestCase
from failpoints import Failpoints
from training_job import Job

STEPS = 200
MB = 1_000_000
BYTES_PER_SECOND = 100 * MB
LINE_BYTES = 128
LINE = re.compile(rb"failpoint line (\d{12}) \.+\n")
GAP = re.compile(r"--- (\d+) bytes from byte \d+ on are missing here")
# What else is in a gap: the trainer's own lines, and the halves of two cut ones.
OTHER_BYTES_MAX = 64 << 10


class Reader:
    """`llmctl logs -f` of one rank, and what it found: each line of the flood in its place, or a gap."""

    def __init__(self, cluster: Cluster, job_id: str, rank: int):
        self.process = subprocess.Popen(cluster.command("logs", "-f", job_id, f"--rank={rank}"), stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, cwd=cluster.root, env=cluster.environment)
        self.next_line = 0
        self.missing_lines = 0
        self.repeated_lines = 0
        self.errors = b""
        self._threads = [threading.Thread(target=self._read), threading.Thread(target=self._read_errors)]
        for thread in self._threads:
            thread.start()

    def _read(self):
        rest = b""
        while piece := self.process.stdout.read1(1 << 20):
            whole, _, rest = (rest + piece).rpartition(b"\n")
            for match in LINE.finditer(whole + b"\n"):
                line = int(match[1])
                self.missing_lines += max(0, line - self.next_line)
                self.repeated_lines += max(0, self.next_line - line)
                self.next_line = line + 1

    def _read_errors(self):
        self.errors = self.process.stderr.read()

    def finish(self) -> list[int]:
        """Waits for its end; the sizes of the gaps that it was told of."""
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)
        if self.process.wait(PATIENCE_SECONDS) != 0:
            raise AssertionError(f"llmctl logs ended with code {self.process.returncode}: {self.errors.decode()}")
        return [int(size) for size in GAP.findall(self.errors.decode())]

    def close(self):
        self.process.kill()
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)
        self.process.stdout.close()
        self.process.stderr.close()
        self.process.wait()


class Flood(ClusterTestCase):
    def start_flood(self, seconds: int) -> tuple[Cluster, Job, str, Reader]:
        cluster = self.start_cluster(lease="10s", heartbeat="1s")
        # In step 11, on the rank that gets there first.
        flood = Failpoints(cluster.root, f"step.before_update=print:{BYTES_PER_SECOND}:{seconds}@21")
        job = Job("flood", cluster.root / "checkpoints", steps=STEPS, checkpoint_every=50, extra=flood.job_section())
        job_id = self.submit(cluster, job)
        rank = cluster.wait_until("a rank prints", lambda: next(
            (path for path in cluster.root.glob("host-0/shims/*/stderr.log") if b": print" in path.read_bytes()), None))
        reader = Reader(cluster, job_id, int(rank.parent.name.rpartition("-r")[2]))
        self.addCleanup(reader.close)
        return cluster, job, job_id, reader

    def assert_it_only_printed(self, cluster: Cluster, job: Job, job_id: str):
        view = self.wait_for_phase(cluster, job_id, SUCCEEDED)
        self.assertEqual(view["attempt"], 1)
        self.assertNotIn("lease-expired", (cluster.root / "coordinator.log").read_text())
        self.assert_undisturbed(job)

    def test_all_that_is_kept_is_read_once_across_a_restart_of_the_agent(self):
        cluster, job, job_id, reader = self.start_flood(seconds=2)

        cluster.wait_until("the reader reads", lambda: reader.next_line > 0)
        cluster.workers[0].kill()
        cluster.workers[0].start()

        self.assert_it_only_printed(cluster, job, job_id)
        self.assertEqual(reader.finish(), [])
        self.assertEqual((reader.missing_lines, reader.repeated_lines), (0, 0))
        self.assertEqual(reader.next_line, 2 * BYTES_PER_SECOND // LINE_BYTES)

    def test_ten_seconds_of_it_hold_up_nothing_and_a_reader_that_falls_behind_is_told(self):
        cluster, job, job_id, reader = self.start_flood(seconds=10)

        cluster.wait_until("the reader reads", lambda: reader.next_line > 0)
        before = job.last_step()
        reader.process.send_signal(signal.SIGSTOP)
        cluster.wait_until("more is printed than is kept", lambda: any(
            int(path.name.split(".")[1]) > 300 * MB for path in cluster.root.glob("host-0/shims/*/stdout.*.log")))
        self.assertGreater(job.last_step(), before)
        reader.process.send_signal(signal.SIGCONT)

        self.assert_it_only_printed(cluster, job, job_id)
        gaps = reader.finish()
        self.assertGreater(len(gaps), 0)
        self.assertEqual(reader.repeated_lines, 0)
        self.assertGreater(reader.missing_lines, 0)
        self.assertLess(abs(sum(gaps) - reader.missing_lines * LINE_BYTES), OTHER_BYTES_MAX)
        self.assertEqual(reader.next_line, 10 * BYTES_PER_SECOND // LINE_BYTES)


if __name__ == "__main__":
    unittest.main()
