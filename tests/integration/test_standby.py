#!/usr/bin/env python3
"""Trainers that wait, loaded, for a job: a job that takes them is as good as one that starts its own, and nothing of
them is left that nobody wants."""

import os
import pathlib
import signal
import unittest

from cluster import Cluster
from cluster_test_case import JOB_SECONDS, SUCCEEDED, ClusterTestCase
from training_job import Job

STEPS = 20


class Standby(ClusterTestCase):
    def start_waiting(self, count: int) -> tuple[Cluster, set[int]]:
        cluster = Cluster((2,), standby=count)
        self.addCleanup(cluster.close)
        self.addCleanup(self._describe_after_failure, cluster)
        cluster.start()
        return cluster, self.await_standbys(cluster, count)

    def await_standbys(self, cluster: Cluster, count: int) -> set[int]:
        cluster.wait_until(f"{count} trainers wait",
                           lambda: cluster.json("nodes")["nodes"][0].get("standbysReady", 0) == count)
        return set(cluster.standbys())

    def run_job(self, cluster: Cluster, job: Job, trainers: set[int] | None = None) -> str:
        """To its end; `trainers` gets the processes that run it."""
        job_id = self.submit(cluster, job)
        if trainers is not None:
            self.wait_for_step(cluster, job, 2)
            trainers.update(cluster.processes("llm-trainer"))
        self.wait_for_phase(cluster, job_id, SUCCEEDED, JOB_SECONDS)
        return job_id

    def test_a_job_that_takes_them_has_the_same_losses_and_its_own_environment_and_logs(self):
        cluster, waiting = self.start_waiting(2)
        # Read once, early, and written into checkpoints; the isa of the other run would be the best that there is.
        environment = "env:\n  LLM_ISA: avx2\n"
        taken = Job("taken", cluster.root / "taken", steps=STEPS, extra=environment)
        trainers = set()
        job_id = self.run_job(cluster, taken, trainers)
        self.assertEqual(trainers, waiting)
        manifests = sorted(pathlib.Path(taken.directory).rglob("manifest.json"))
        self.assertIn('"isa": "avx2"', manifests[-1].read_text())
        for rank in (0, 1):
            log = cluster.llmctl("logs", job_id, f"--rank={rank}").stdout
            self.assertTrue(log.startswith(f"rank {rank} of 2, attempt 1, generation 1\n"), log[:200])

        # What is read when the program is loaded cannot be given to one that has loaded it.
        fresh = Job("fresh", cluster.root / "fresh", steps=STEPS,
                    extra=environment + "  OMP_WAIT_POLICY: passive\n")
        waiting, trainers = self.await_standbys(cluster, 2), set()
        self.run_job(cluster, fresh, trainers)

        self.assertFalse(trainers & waiting)
        self.assertEqual(len(taken.losses()), STEPS)
        self.assertEqual(taken.losses(), fresh.losses())

    def test_one_that_is_killed_is_replaced(self):
        cluster, waiting = self.start_waiting(1)

        os.kill(*waiting, signal.SIGKILL)

        cluster.wait_until("another waits", lambda: set(cluster.standbys()) - waiting)
        self.assertFalse(self.await_standbys(cluster, 1) & waiting)

    def test_an_agent_that_is_killed_leaves_none_behind(self):
        cluster, waiting = self.start_waiting(1)
        agent = cluster.workers[0]

        agent.kill()
        agent.start()
        cluster.wait_until("the new agent has taken the standby over",
                           lambda: self.await_standbys(cluster, 1) == waiting)
        agent.kill()

        cluster.wait_until("nothing of the host is left",
                           lambda: not cluster.standbys() and not cluster.standbys("llm-shim"))

    def test_an_agent_that_is_stopped_ends_them_at_once(self):
        cluster, _ = self.start_waiting(1)

        cluster.workers[0].kill(signal.SIGTERM)

        # Far less than it takes one without an agent to give up.
        cluster.wait_until("nothing of the host is left", lambda: not cluster.standbys(), seconds=5)


if __name__ == "__main__":
    unittest.main()
