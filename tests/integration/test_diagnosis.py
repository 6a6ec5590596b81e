#!/usr/bin/env python3
"""Jobs that stand still, ranks that are slow, attempts that end badly: is the culprit named, is the evidence there?"""

import os
import re
import signal
import threading
import unittest

from cluster import Cluster
from cluster_test_case import STEP_SECONDS, SUCCEEDED, ClusterTestCase
from training_job import Job

STEPS = 60
DISTURBED_AT = 25
NOT_FOUND = 3
HANG_AFTER = """faultTolerance:
  hangAfter: 2s
"""


class Diagnosis(ClusterTestCase):
    def start_job(self, devices: tuple[int, ...] = (2,), steps: int = STEPS, extra: str = ""):
        cluster = self.start_cluster(devices)
        job = Job("disturbed", cluster.root / "checkpoints", steps=steps, hosts=len(devices), extra=extra)
        job_id = self.submit(cluster, job)
        self.wait_for_step(cluster, job, DISTURBED_AT)
        return cluster, job, job_id

    @staticmethod
    def trainer_of(cluster: Cluster, job_id: str, rank: int) -> int:
        return next(entry["pid"] for entry in cluster.json("get", job_id)["ranks"] if entry["rank"] == rank)

    def diagnose(self, cluster: Cluster, job_id: str, attempt: int, ranks: int) -> dict:
        """Once all hosts have collected: that is done in the background."""
        def collected():
            if cluster.llmctl("diagnose", job_id, f"--attempt={attempt}", check=False).returncode != 0:
                return None
            found = cluster.json("diagnose", job_id, f"--attempt={attempt}")
            return found if len(found["ranks"]) == ranks else None

        return cluster.wait_until(f"the evidence of attempt {attempt} is there", collected)

    def test_stopped_trainer_is_named_and_the_job_goes_on_as_if_nothing_had_been(self):
        cluster, job, job_id = self.start_job(devices=(1, 1), extra=HANG_AFTER)
        os.kill(self.trainer_of(cluster, job_id, 1), signal.SIGSTOP)

        view = self.wait_for_phase(cluster, job_id, SUCCEEDED)

        self.assertEqual(view["attempt"], 2)
        self.assert_undisturbed(job)
        found = self.diagnose(cluster, job_id, attempt=1, ranks=2)
        # It was stopped in a collective or somewhere else; either way it is named, and so is the collective.
        self.assertRegex(found["cause"], r"the job hangs: .*rank 1 \(host-\d\).*its process is stopped")
        self.assertRegex(found["cause"], r"(all_reduce|barrier|broadcast) #\d+ (step|grad|loss|run)\.")
        self.assertIn("no progress after step", found["cause"])
        stacks = {rank["rank"]: rank["stacks"] for rank in found["ranks"]}
        self.assertIn("Communicator::Collective", stacks[0])
        self.assertIn("llmctl::trainer::", stacks[1])
        self.assertIn("stopped", stacks[1])

    def test_killed_trainer_leaves_the_stacks_of_the_survivor(self):
        cluster, job, job_id = self.start_job(devices=(1, 1))
        os.kill(self.trainer_of(cluster, job_id, 1), signal.SIGKILL)

        found = self.diagnose(cluster, job_id, attempt=1, ranks=2)

        self.assertIn("rank 1", found["cause"])
        self.assertIn("killed by signal 9", found["cause"])
        survivor, victim = found["ranks"]
        # The picture comes so soon that the survivor may still compute, and not yet wait for the one that is gone.
        self.assertIn("llmctl::trainer::RunTraining", survivor["stacks"])
        self.assertIn("killed by signal 9", victim["exit"])
        self.assertTrue(victim["collectives"], "the ring outlives the process")
        printed = cluster.llmctl("diagnose", job_id, "--attempt=1", "--save=evidence").stdout
        self.assertIn("llmctl::trainer::RunTraining", printed)
        self.assertRegex(printed, r"RANK +NODE +STEP")
        self.assertEqual(len(list((cluster.root / "evidence").glob("*.tar"))), 2)
        self.wait_for_phase(cluster, job_id, SUCCEEDED)
        self.assert_undisturbed(job)

    def test_crash_leaves_the_stack_of_the_rank_itself(self):
        cluster, _, job_id = self.start_job()
        os.kill(self.trainer_of(cluster, job_id, 1), signal.SIGSEGV)

        found = self.diagnose(cluster, job_id, attempt=1, ranks=2)

        self.assertIn("killed by signal 11", found["cause"])
        self.assertRegex(found["ranks"][1]["stacks"], re.compile("OnCrash|llmctl::trainer"))

    def test_slow_rank_is_named_and_nothing_is_restarted(self):
        cluster, _, job_id = self.start_job(steps=100000)
        trainer = self.trainer_of(cluster, job_id, 1)
        done = threading.Event()

        def slow_down():
            while not done.wait(0.02):
                os.kill(trainer, signal.SIGSTOP)
                done.wait(0.06)
                os.kill(trainer, signal.SIGCONT)

        drag = threading.Thread(target=slow_down)
        drag.start()
        try:
            ranks = cluster.wait_until("the slow rank is shown", lambda: self.with_straggler(cluster, job_id),
                                       STEP_SECONDS)
            shown = cluster.llmctl("get", job_id).stdout
        finally:
            done.set()
            drag.join()

        self.assertEqual([rank["rank"] for rank in ranks if rank["straggler"]], [1])
        self.assertGreater(ranks[1]["slowness"], 1.3)
        self.assertIn("SLOW", shown)
        events = cluster.json("events", job_id)["events"]
        told = [event["text"] for event in events if event["kind"] == "straggler"]
        self.assertTrue(told and told[0].startswith("rank 1 is slow"), events)
        view = cluster.json("get", job_id)
        self.assertEqual((view["phase"], view["attempt"]), ("running", 1))

    @staticmethod
    def with_straggler(cluster: Cluster, job_id: str) -> list[dict]:
        ranks = cluster.json("get", job_id)["ranks"]
        return ranks if any(rank["straggler"] for rank in ranks) else []

    def test_attempt_that_ended_well_leaves_no_evidence(self):
        cluster = self.start_cluster()
        job_id = self.submit(cluster, Job("well", cluster.root / "checkpoints", steps=5))
        self.wait_for_phase(cluster, job_id, SUCCEEDED)

        answer = cluster.llmctl("diagnose", job_id, check=False)

        self.assertEqual(answer.returncode, NOT_FOUND, answer.stderr)
        self.assertIn("has not ended badly", answer.stderr)


if __name__ == "__main__":
    unittest.main()
