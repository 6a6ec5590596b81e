#!/usr/bin/env python3
"""A host whose memory runs out: the kernel kills the trainer, not the shim or the agent that have to tell of it."""

import unittest

from cluster import Cluster
from cluster_test_case import FAILED, SUCCEEDED, ClusterTestCase
from lab import MemoryLimit
from training_job import Job

STEPS = 30
# The daemons and their shims fit, a trainer does not.
TOO_LITTLE_MIB = 160
ENOUGH_MIB = 4096


class OutOfMemory(ClusterTestCase):
    def start_job(self, mib: int) -> tuple[Cluster, MemoryLimit, Job, str]:
        limit = MemoryLimit(mib)
        self.addCleanup(limit.close)
        cluster = self.start_cluster(devices=())
        host = cluster.worker("small", 2, limit.enter())
        cluster.workers.append(host)
        host.start()
        cluster.wait_until("the host is ready", cluster.ready_nodes)
        job = Job("memory", cluster.root / "checkpoints", steps=STEPS)
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


if __name__ == "__main__":
    unittest.main()
