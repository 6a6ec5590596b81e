#!/usr/bin/env python3
"""New programs take over under running jobs: another agent, another coordinator, another trainer on disk."""

import shutil
import signal
import unittest

from cluster import Cluster, bin_folder
from cluster_test_case import SUCCEEDED, ClusterTestCase
from other_build import with_another_digest, with_build_id
from training_job import Job

NEW = "9.9.9+feedfacecafe"
STEPS = 80
DISTURBED_AT = 25


class Upgrade(ClusterTestCase):
    def start_job(self, cluster: Cluster) -> tuple[Job, str]:
        job = Job("upgraded", cluster.root / "checkpoints", steps=STEPS)
        job_id = self.submit(cluster, job)
        self.wait_for_step(cluster, job, DISTURBED_AT)
        return job, job_id

    def node(self, cluster: Cluster, name: str) -> dict:
        return next(node for node in cluster.json("nodes")["nodes"] if node["id"] == name)

    def test_new_agent_takes_over_under_a_running_job(self):
        cluster = self.start_cluster()
        job, job_id = self.start_job(cluster)
        trainers = set(cluster.processes("llm-trainer"))
        old = self.node(cluster, "host-0")
        agent = cluster.workers[0]

        agent.kill(signal.SIGTERM)
        agent.command[0] = str(with_build_id("llm-worker", cluster.root / "new", NEW))
        agent.command += [f"--trainer={bin_folder() / 'llm-trainer'}", f"--shim={bin_folder() / 'llm-shim'}"]
        self.wait_for_step(cluster, job, job.last_step() + 3)
        agent.start()

        cluster.wait_until("the new agent is known", lambda: self.node(cluster, "host-0")["buildId"] == NEW)
        self.assertEqual(set(cluster.processes("llm-trainer")), trainers)
        self.assertEqual(self.node(cluster, "host-0")["trainerDigest"], old["trainerDigest"])
        self.assertIn(f"skew: 2 builds: {old['buildId']} on coordinator; {NEW} on host-0",
                      cluster.llmctl("nodes").stdout)
        self.assertEqual(self.wait_for_phase(cluster, job_id, SUCCEEDED)["attempt"], 1)
        self.assertEqual(len(job.generations()), 1)
        self.assert_undisturbed(job)

    def test_new_coordinator_takes_over_under_a_running_job(self):
        cluster = self.start_cluster()
        job, job_id = self.start_job(cluster)
        trainers = set(cluster.processes("llm-trainer"))

        cluster.coordinator.kill(signal.SIGTERM)
        cluster.coordinator.command[0] = str(with_build_id("llm-coordinator", cluster.root / "new", NEW))
        self.wait_for_step(cluster, job, job.last_step() + 3)
        cluster.start_coordinator()

        cluster.wait_until("the host is back", lambda: cluster.ready_nodes() == ["host-0"])
        report = cluster.json("version")
        self.assertEqual(report["coordinator"]["buildId"], NEW)
        self.assertNotEqual(report["hosts"]["host-0"], NEW)
        self.assertIn("skew: 2 builds", cluster.llmctl("version").stdout)
        self.assertEqual(set(cluster.processes("llm-trainer")), trainers)
        self.assertEqual(self.wait_for_phase(cluster, job_id, SUCCEEDED)["attempt"], 1)
        self.assert_undisturbed(job)

    def start_with_own_trainers(self, devices: tuple[int, ...]) -> Cluster:
        """Each host has an llm-trainer of its own, so that it can be replaced."""
        cluster = Cluster(devices)
        for worker in cluster.workers:
            own = cluster.root / f"{worker.name}-trainer"
            shutil.copy(bin_folder() / "llm-trainer", own)
            worker.command.append(f"--trainer={own}")
        self.addCleanup(cluster.close)
        self.addCleanup(self._describe_after_failure, cluster)
        cluster.start()
        return cluster

    def test_gang_never_mixes_trainers_and_a_replaced_one_is_noticed_before_a_start(self):
        cluster = self.start_with_own_trainers((1, 1))
        old = self.node(cluster, "host-0")["trainerDigest"]
        # Under a running agent, as an upgrade does it; nothing tells the agent.
        with_another_digest("llm-trainer", cluster.root / "host-1-trainer")
        job = Job("mixed", cluster.root / "checkpoints", steps=5, hosts=2)
        job_id = self.submit(cluster, job)

        cluster.wait_until("host-1's new trainer is known",
                           lambda: self.node(cluster, "host-1")["trainerDigest"] != old)
        cluster.wait_until("the job waits", lambda: cluster.json("get", job_id)["phase"] in ("queued", "backoff"))
        self.assertEqual(job.last_step(), 0)
        with_another_digest("llm-trainer", cluster.root / "host-0-trainer")

        self.wait_for_phase(cluster, job_id, SUCCEEDED)
        self.assertEqual(self.node(cluster, "host-0")["trainerDigest"], self.node(cluster, "host-1")["trainerDigest"])


if __name__ == "__main__":
    unittest.main()
