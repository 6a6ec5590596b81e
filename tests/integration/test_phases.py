#!/usr/bin/env python3
"""A trainer that is killed in the one moment where it hurts most: each phase of a step and of a checkpoint.

The moment is a failpoint in the code; that it was met is asserted by its hit count. Hits are counted over both ranks,
and numbers are chosen so that two checkpoints are committed before.
"""

import unittest

from cluster_test_case import SUCCEEDED, ClusterTestCase
from failpoints import Failpoints
from training_job import Job

STEPS = 60
RANKS = 2
LAYERS = 4
# Into the third checkpoint: after step 20, before step 31.
STEP = 27


class Phases(ClusterTestCase):
    def kill_at(self, name: str, hit: int) -> Job:
        cluster = self.start_cluster()
        failpoints = Failpoints(cluster.root, f"{name}=kill@{hit}")
        job = Job("phases", cluster.root / "checkpoints", steps=STEPS, extra=failpoints.job_section())
        job_id = self.submit(cluster, job)

        view = self.wait_for_phase(cluster, job_id, SUCCEEDED)

        self.assertGreater(failpoints.hits(name), hit, "the failpoint was not met, or training did not go on after it")
        self.assertEqual(view["attempt"], 2)
        self.assert_undisturbed(job)
        return job

    def test_killed_in_the_midst_of_a_forward_pass(self):
        job = self.kill_at("model.forward", RANKS * LAYERS * STEP + LAYERS // 2)

        self.assertEqual(job.steps_of(2)[0], 21)

    def test_killed_in_the_midst_of_an_all_reduce(self):
        # Each rank sums three times a step: its tokens, its gradients, its loss.
        job = self.kill_at("collective.all_reduce", RANKS * 3 * STEP + RANKS + 1)

        self.assertEqual(job.steps_of(2)[0], 21)

    def test_killed_between_norm_and_update(self):
        job = self.kill_at("step.before_update", RANKS * STEP)

        self.assertEqual(job.steps_of(2)[0], 21)

    def test_killed_in_the_midst_of_writing_a_checkpoint(self):
        job = self.kill_at("checkpoint.write", 300)

        self.assertIn(job.steps_of(2)[0], (11, 21))
        self.assertEqual(job.torn_checkpoints(), [], "what the crash left half-written is replaced or removed")

    def test_killed_between_the_fsync_of_a_checkpoint_and_its_commit(self):
        job = self.kill_at("checkpoint.before_commit", 3)

        # The third checkpoint is whole on disk, and is none: nobody committed it.
        self.assertEqual(job.steps_of(1)[-1], 30)
        self.assertEqual(job.steps_of(2)[0], 21)


if __name__ == "__main__":
    unittest.main()
