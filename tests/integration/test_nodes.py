#!/usr/bin/env python3
"""What operators do with hosts, and what becomes of the jobs there."""

import os
import signal
import unittest

from cluster import Cluster
from cluster_test_case import JOB_SECONDS, SUCCEEDED, ClusterTestCase
from training_job import Job

STEPS = 30
DRAINED_AT = 8


class Drain(ClusterTestCase):
    def test_drained_host_gives_its_job_away_without_losing_a_step(self):
        cluster = self.start_cluster(devices=(2, 2))
        undisturbed = Job("undisturbed", cluster.root / "undisturbed", steps=STEPS)
        self.submit(cluster, undisturbed)
        cluster.llmctl("wait", undisturbed.name, seconds=JOB_SECONDS)
        job = Job("moved", cluster.root / "moved", steps=STEPS)
        job_id = self.submit(cluster, job)
        self.wait_for_step(cluster, job, DRAINED_AT)
        drained = self.host_of(cluster, job_id)

        node = cluster.json("nodes", "drain", drained, "--reason=new disks", "--deadline=1m", "--wait")

        self.assertEqual(node["service"], "drained")
        self.assertEqual(node.get("jobsByDevice", {}), {})
        trainers = cluster.processes("llm-trainer").values()
        self.assertFalse([line for line in trainers if f"/{drained}/" in " ".join(line)])
        view = self.wait_for_phase(cluster, job_id, SUCCEEDED)
        self.assertEqual(view["attempt"], 2)
        self.assertNotEqual(self.host_of(cluster, job_id), drained)
        self.assertEqual(job.losses(), undisturbed.losses())
        first, second = map(job.steps_of, job.generations())
        self.assertEqual(max(first) + 1, min(second), "a job that yields saves what it has: no step is taken twice")
        texts = [event["text"] for event in cluster.json("events", job_id)["events"]]
        self.assertTrue(any(f"host {drained} is being drained" in text for text in texts), texts)

    def test_job_waits_for_a_closed_host_and_says_so(self):
        cluster = self.start_cluster(devices=(2,))
        cluster.llmctl("nodes", "cordon", "host-0", "--reason=new disks")
        job = Job("waiting", cluster.root / "checkpoints", steps=5)
        job_id = self.submit(cluster, job)

        cluster.wait_until("the job says what it waits for",
                           lambda: "host-0 (cordoned: new disks)" in cluster.json("get", job_id).get("reason", ""))
        missing = cluster.llmctl("nodes", "uncordon", "host-9", check=False)
        cluster.llmctl("nodes", "uncordon", "host-0")

        self.assertEqual(missing.returncode, 3, missing.stderr)
        self.wait_for_phase(cluster, job_id, SUCCEEDED)

    @staticmethod
    def host_of(cluster: Cluster, job_id: str) -> str:
        return cluster.json("get", job_id)["ranks"][0]["node"]


class Ledger(ClusterTestCase):
    def test_host_on_which_a_trainer_dies_again_and_again_is_tested_and_earns_its_way_back(self):
        # The second host is too small for the job: it would go there instead.
        cluster = self.start_cluster(devices=(2, 1))
        job = Job("unlucky", cluster.root / "checkpoints", steps=40, checkpoint_every=1000,
                  extra="faultTolerance:\n  maxAttemptsWithoutProgress: 10\n")
        job_id = self.submit(cluster, job)
        for generation in (1, 2, 3):
            cluster.wait_until(f"attempt {generation} trains", lambda: job.generations()[-1:] == [generation])
            os.kill(max(cluster.processes("llm-trainer")), signal.SIGBUS)

        quarantined = cluster.wait_until(
            "the host takes no ranks", lambda: self.node_if(cluster, "host-0", ("quarantined", "burn-in", "parole")))
        self.assertIn("killed by signal 7", quarantined["strikes"][-1]["reason"])
        self.assertEqual([strike["job"] for strike in quarantined["strikes"]], [job_id] * 3)
        paroled = cluster.wait_until("its burn-in is passed", lambda: self.node_if(cluster, "host-0", ("parole",)))

        self.assertTrue(paroled["preflight"]["passed"], paroled)
        self.assertEqual({check["name"]: check["outcome"] for check in paroled["preflight"]["checks"]},
                         dict.fromkeys(("matmul", "memory", "all-reduce", "disk"), "passed"))
        view = self.wait_for_phase(cluster, job_id, SUCCEEDED)
        self.assertEqual(view["attempt"], 4)
        texts = [event["text"] for event in cluster.json("events", job_id)["events"]]
        self.assertTrue(any("(infrastructure, rule bad-instruction-or-bus): rank" in text for text in texts), texts)
        listed = cluster.llmctl("nodes", "strikes", "host-0").stdout
        self.assertIn("ready, parole", listed)

    def test_idle_host_is_tested_after_its_registration_and_the_result_is_shown(self):
        cluster = self.start_cluster(devices=(2,))

        node = cluster.wait_until("the pre-flight has ended",
                                  lambda: "preflight" in (n := cluster.json("nodes", "get", "host-0")) and n)

        self.assertTrue(node["preflight"]["passed"], node["preflight"])
        self.assertFalse(node["preflightPending"])
        shown = cluster.llmctl("nodes", "get", "host-0").stdout
        self.assertIn("GFLOP/s", shown)
        self.assertFalse(list(cluster.root.glob("host-0/preflight-*")), "it leaves nothing behind")

    @staticmethod
    def node_if(cluster: Cluster, name: str, trusts: tuple[str, ...]) -> dict | None:
        node = cluster.json("nodes", "get", name)
        return node if node["trust"] in trusts else None


if __name__ == "__main__":
    unittest.main()
