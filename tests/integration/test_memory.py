#!/usr/bin/env python3
"""A host whose memory runs out: the kernel kills the trainer, not the shim or the agent that have to tell of it."""

import os
import signal
import subprocess
import sys
import time
import unittest

from cluster import Cluster
from cluster_test_case import FAILED, SUCCEEDED, ClusterTestCase
from final_sequence import final_sequence
from lab import MemoryLimit
from training_job import Job

STEPS = 30
# The daemons and their shims fit, a trainer does not.
TOO_LITTLE_MIB = 160
ENOUGH_MIB = 4096
# What a trainer may map for itself: enough for LibTorch and the model.
DEVICE_MIB = 1280
# A trainer fits, and one that waits for a job.
SHARED_MIB = 1536
# The kernel takes it before all others.
GREEDY = """
open("/proc/self/oom_score_adj", "w").write("1000")
held = []
while True:
    held.append(b"x" * (1 << 24))
"""
# Until the shim is sure that its trainer has outlived the kill of another process.
LONG_SECONDS = 5


class OutOfMemory(ClusterTestCase):
    def start_job(self, mib: int, steps: int = STEPS) -> tuple[Cluster, MemoryLimit, Job, str]:
        limit = MemoryLimit(mib)
        self.addCleanup(limit.close)
        cluster = self.start_cluster(devices=())
        host = cluster.worker("small", 2, limit.enter())
        cluster.workers.append(host)
        host.start()
        cluster.wait_until("the host is ready", cluster.ready_nodes)
        job = Job("memory", cluster.root / "checkpoints", steps=steps)
        return cluster, limit, job, self.submit(cluster, job)

    def test_job_that_needs_more_memory_than_its_host_has_fails_and_says_so(self):
        cluster, limit, _, job_id = self.start_job(TOO_LITTLE_MIB)

        view = self.wait_for_phase(cluster, job_id, FAILED)

        self.assertGreater(limit.kills(), 0)
        self.assertEqual(view["failureClass"], "user")
        # By the kernel's log where it can be read, else by the shim's word.
        self.assertIn(view["failureRule"], ("host-out-of-memory", "memory-ran-out"))
        self.assertIn("memory", view["reason"])
        self.assertTrue(cluster.workers[0].running())

    def test_memory_that_was_short_once_costs_one_attempt(self):
        cluster, limit, job, job_id = self.start_job(TOO_LITTLE_MIB)

        cluster.wait_until("the kernel has killed a trainer", limit.kills)
        limit.set(ENOUGH_MIB)

        view = self.wait_for_phase(cluster, job_id, SUCCEEDED)
        self.assertEqual(view["attempt"], 2)
        self.assert_undisturbed(job)

    def test_trainer_that_is_killed_long_after_the_kernel_took_another_process_was_not_out_of_memory(self):
        cluster, limit, job, job_id = self.start_job(SHARED_MIB, steps=100000)
        self.wait_for_step(cluster, job, 3)
        subprocess.run([*limit.enter(), sys.executable, "-c", GREEDY], capture_output=True, check=False)
        self.assertEqual(limit.kills(), 1)
        taken = time.time()
        cluster.wait_until("the trainers have gone on for long",
                           lambda: max(line["time"] for line in job.curve().values()) > taken + LONG_SECONDS)

        # Twice: a job that has run out of memory is given one more attempt.
        for generation in (1, 2):
            os.kill(cluster.trainers()[0], signal.SIGKILL)
            self.wait_for_step(cluster, job, 3, generation + 1)

        self.assertEqual(cluster.json("get", job_id)["attempt"], 3)


class DeviceMemory(ClusterTestCase):
    def test_job_that_does_not_fit_is_tried_with_smaller_micro_batches_only(self):
        cluster = self.start_cluster(devices=())
        host = cluster.worker("small", 2, ("prlimit", f"--data={DEVICE_MIB << 20}"))
        cluster.workers.append(host)
        host.start()
        cluster.wait_until("the host is ready", cluster.ready_nodes)
        job = Job("smaller", cluster.root / "checkpoints", steps=2, checkpoint_every=1, global_batch=1024,
                  micro_batch=512)
        job_id = self.submit(cluster, job)

        view = self.wait_for_phase(cluster, job_id, SUCCEEDED)

        self.assertGreater(view["attempt"], 1)
        texts = [event["text"] for event in cluster.json("events", job_id)["events"]]
        retries = [text for text in texts if "micro-batches of" in text]
        self.assertEqual(len(retries), view["attempt"] - 1)
        self.assertIn("micro-batches of 256 instead of 512", retries[0])
        self.assertIn("Cannot allocate memory", " ".join(texts))
        final = final_sequence(job)
        self.assertEqual((final.lost, final.repeated), ([], []))


if __name__ == "__main__":
    unittest.main()
