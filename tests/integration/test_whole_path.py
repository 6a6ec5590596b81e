#!/usr/bin/env python3
"""From a job file to text out of the model, through the real programs."""

import math
import unittest

from cluster_test_case import SUCCEEDED, ClusterTestCase
from training_job import Job, dataset


class WholePath(ClusterTestCase):
    def test_a_job_is_validated_trained_shown_and_sampled_from(self):
        cluster = self.start_cluster()
        job = Job("whole-path", cluster.root / "checkpoints")
        path = job.write(cluster.root)
        cluster.llmctl("validate", path)

        followed = cluster.llmctl("submit", "--follow", path, seconds=180)

        self.assertIn(str(job.steps), followed.stdout + followed.stderr)
        cluster.llmctl("wait", job.name)
        view = cluster.json("get", job.name)
        self.assertEqual(view["phase"], SUCCEEDED)
        self.assertEqual(view["attempt"], 1)
        self.assertEqual(view["checkpoint"]["step"], job.steps)
        with self.subTest("every step was taken once, and the model learned"):
            losses = job.losses()
            self.assertEqual([step for step, _ in losses], list(range(1, job.steps + 1)))
            self.assertTrue(all(math.isfinite(loss) for _, loss in losses))
            self.assertLess(losses[-1][1], losses[0][1] - 1)
        with self.subTest("logs of both ranks"):
            for rank in (0, 1):
                text = cluster.llmctl("logs", job.name, f"--rank={rank}").stdout
                text += cluster.llmctl("logs", job.name, f"--rank={rank}", "--stderr").stdout
                self.assertGreater(len(text), 0)
        with self.subTest("events tell the story in order"):
            kinds = [event["kind"] for event in cluster.json("events", job.name)["events"]]
            story = ["submitted", "placed", "running", "checkpoint"]
            self.assertEqual([kind for kind in dict.fromkeys(kinds) if kind in story], story)
        with self.subTest("the newest checkpoints are kept"):
            kept = cluster.json("checkpoints", job.name)["checkpoints"]
            self.assertEqual([checkpoint["step"] for checkpoint in kept][:1], [job.steps])
            on_disk = [path for path in job.directory.rglob("step-*") if path.is_dir()]
            self.assertEqual(len(on_disk), 2)
        with self.subTest("text comes out of the model"):
            sample = cluster.llmctl("generate", job.name, "--prompt", "The ", "--tokens", 20, "--seed", 1, seconds=60)
            self.assertGreater(len(sample.stdout), len("The "))
        with self.subTest("nothing is left running"):
            cluster.wait_until("shims and trainers have ended",
                               lambda: not cluster.processes("llm-shim") and not cluster.processes("llm-trainer"))

    def test_submitting_again_with_the_same_key_gives_the_same_job(self):
        cluster = self.start_cluster()
        job = Job("twice", cluster.root / "checkpoints", steps=2)

        first = self.submit(cluster, job, "--idempotency-key", "k1")
        second = self.submit(cluster, job, "--idempotency-key", "k1")
        job.steps = 3
        other = cluster.llmctl("submit", job.write(cluster.root), "--idempotency-key", "k1", check=False)

        self.assertEqual(first, second)
        self.assertEqual(len(cluster.json("list")["jobs"]), 1)
        self.assertEqual(other.returncode, 6, other.stderr)
        self.assertTrue(dataset().exists())


if __name__ == "__main__":
    unittest.main()
