#!/usr/bin/env python3
"""What operators do with hosts, and what becomes of the jobs there."""

import unittest

from cluster import Cluster
from cluster_test_case import JOB_SECONDS, SUCCEEDED, ClusterTestCase
from training_job import Job

STEPS = 60
DRAINED_AT = 15


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
        first, second = (self.steps_of(job, generation) for generation in job.generations())
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

    @staticmethod
    def steps_of(job: Job, generation: int) -> list[int]:
        path = next(job.directory.rglob(f"curves/*-g{generation}.jsonl"))
        return [int(line.split('"step":')[1].split(",")[0]) for line in path.read_text().splitlines()
                if '"loss"' in line]


if __name__ == "__main__":
    unittest.main()
