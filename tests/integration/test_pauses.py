#!/usr/bin/env python3
"""Processes that stand still for a while and go on: nothing was lost, so nothing may be restarted."""

import os
import signal
import threading
import unittest

from cluster import Cluster
from cluster_test_case import SUCCEEDED, ClusterTestCase
from training_job import Job

STEPS = 80
DISTURBED_AT = 25


class Pauses(ClusterTestCase):
    def start_job(self, **options) -> tuple[Cluster, Job, str]:
        cluster = self.start_cluster(**options)
        job = Job("paused", cluster.root / "checkpoints", steps=STEPS)
        job_id = self.submit(cluster, job)
        self.wait_for_step(cluster, job, DISTURBED_AT)
        return cluster, job, job_id

    def assert_nothing_happened(self, cluster: Cluster, job: Job, job_id: str):
        view = self.wait_for_phase(cluster, job_id, SUCCEEDED)
        self.assertEqual(view["attempt"], 1)
        self.assertEqual(job.generations(), [1])
        self.assert_undisturbed(job)

    @staticmethod
    def pause(pid: int, seconds: float):
        """The pause is what is tested, so here time itself is waited for."""
        os.kill(pid, signal.SIGSTOP)
        threading.Event().wait(seconds)
        os.kill(pid, signal.SIGCONT)

    def test_agent_that_stands_still_for_five_seconds_costs_no_attempt_at_the_default_lease(self):
        cluster, job, job_id = self.start_job(lease="10s", heartbeat="1s")

        self.pause(cluster.workers[0].pid, 5)

        self.assert_nothing_happened(cluster, job, job_id)

    def test_trainer_that_stands_still_for_two_seconds_is_waited_for(self):
        cluster, job, job_id = self.start_job()

        self.pause(cluster.trainers()[0], 2)

        self.assert_nothing_happened(cluster, job, job_id)

    def test_shim_that_stands_still_for_five_seconds_holds_up_nobody(self):
        cluster, job, job_id = self.start_job()
        shim = min(cluster.processes("llm-shim"))

        self.pause(shim, 5)

        self.assert_nothing_happened(cluster, job, job_id)


if __name__ == "__main__":
    unittest.main()
