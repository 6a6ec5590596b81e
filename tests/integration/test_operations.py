#!/usr/bin/env python3
"""What an operator does to a coordinator while jobs train: backups, restores; and a job that crashes it."""

import contextlib
import os
import signal
import unittest

from cluster import Cluster
from cluster_test_case import STEP_SECONDS, SUCCEEDED, SUSPENDED, ClusterTestCase
from failpoints import Failpoints
from training_job import Job

# Numbers of a restored store begin above it.
RESTORE_GAP = 10**9
STEPS = 80
DISTURBED_AT = 25


class Operations(ClusterTestCase):
    def start_job(self, cluster: Cluster) -> tuple[Job, str]:
        job = Job("looked-after", cluster.root / "checkpoints", steps=STEPS)
        job_id = self.submit(cluster, job)
        self.wait_for_step(cluster, job, DISTURBED_AT)
        return job, job_id

    def restore(self, cluster: Cluster, backup):
        """Leaves the trainers stopped: however slow this machine is, the job must not end before all is back."""
        cluster.coordinator.kill()
        self.signal_trainers(cluster, signal.SIGSTOP)
        cluster.llmctl("admin", "restore", backup, f"--data-dir={cluster.root / 'coordinator'}", "--force")
        cluster.start_coordinator()
        cluster.wait_until("the host is back", lambda: "lastSeen" in cluster.json("nodes")["nodes"][0])

    @staticmethod
    def signal_trainers(cluster: Cluster, what: signal.Signals):
        for pid in cluster.processes("llm-trainer"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, what)

    def test_job_that_still_runs_is_adopted_by_a_restored_coordinator(self):
        cluster = self.start_cluster()
        job, job_id = self.start_job(cluster)
        backup = cluster.root / "store.backup"
        trainers = set(cluster.processes("llm-trainer"))

        cluster.llmctl("admin", "backup", backup)
        running = cluster.llmctl("admin", "restore", backup, f"--data-dir={cluster.root / 'coordinator'}", "--force",
                                 check=False)
        self.wait_for_step(cluster, job, job.last_step() + 2 * job.checkpoint_every)
        later = Job("later", cluster.root / "later", steps=100000)
        later_id = self.submit(cluster, later)
        self.restore(cluster, backup)
        self.signal_trainers(cluster, signal.SIGCONT)

        self.assertNotEqual(running.returncode, 0)
        self.assertIn("another process", running.stderr)
        self.assertTrue(trainers >= set(cluster.processes("llm-trainer")))
        self.assertEqual(cluster.llmctl("get", later_id, check=False).returncode, 3)
        view = self.wait_for_phase(cluster, job_id, SUCCEEDED)
        self.assertEqual(view["attempt"], 1)
        self.assertEqual(job.generations(), [1])
        self.assert_undisturbed(job)
        # Its number was handed out before: the next job has another.
        fresh = self.submit(cluster, Job("fresh", cluster.root / "fresh", steps=1))
        self.assertGreater(int(fresh.removeprefix("j-")), RESTORE_GAP)
        self.wait_for_phase(cluster, fresh, SUCCEEDED)

    def test_job_that_went_through_generations_since_goes_on_from_what_is_on_disk(self):
        cluster = self.start_cluster()
        job, job_id = self.start_job(cluster)
        backup = cluster.root / "store.backup"

        cluster.llmctl("admin", "backup", backup)
        os.kill(max(cluster.processes("llm-trainer")), signal.SIGKILL)
        cluster.wait_until("generation 2 has committed what the backup does not know",
                           lambda: job.generations()[-1:] == [2] and job.last_step() > 52, STEP_SECONDS)
        committed = cluster.json("get", job_id)["checkpoint"]["step"]
        self.restore(cluster, backup)

        view = self.wait_for_phase(cluster, job_id, SUCCEEDED)
        generations = job.generations()
        self.assertEqual(generations[:2], [1, 2])
        self.assertTrue(all(generation > RESTORE_GAP for generation in generations[2:]), generations)
        self.assertEqual(view["generation"], generations[-1])
        # Not from the pointer of the backup, and not from the beginning.
        self.assertGreater(min(job.steps_of(generations[2])), committed)
        self.assert_undisturbed(job)

    def test_job_that_crashes_the_coordinator_is_kept_apart_and_everything_else_goes_on(self):
        cluster = self.start_cluster(devices=(2, 2))
        bad = Job("bad", cluster.root / "bad", steps=100000)
        bad_id = self.submit(cluster, bad)
        self.wait_for_step(cluster, bad, 12)
        good, good_id = self.start_job(cluster)
        name = f"coordinator.step.{bad_id}"
        failpoints = Failpoints(cluster.root, f"{name}=kill@1,{name}=kill@2")
        cluster.coordinator.kill(signal.SIGTERM)
        cluster.coordinator.environment = {**cluster.environment, **failpoints.variables()}

        for crash in (1, 2):
            cluster.start_coordinator()
            # At its next checkpoint, at the latest.
            cluster.wait_until(f"the job crashes the coordinator, {crash} of 2",
                               lambda: not cluster.coordinator.running())
            self.assertEqual(failpoints.hits(name), crash)
        cluster.start_coordinator()

        held = self.wait_for_phase(cluster, bad_id, SUSPENDED)
        self.assertIn("quarantined: handling it has crashed the coordinator 2 times", held["reason"])
        self.assertIn(f"job {bad_id}", cluster.llmctl("admin", "quarantine").stdout)
        self.assertEqual(self.wait_for_phase(cluster, good_id, SUCCEEDED)["attempt"], 1)
        self.assert_undisturbed(good)
        cluster.wait_until("its ranks have been stopped", lambda: not cluster.processes("llm-trainer"))
        # Hosts still said things about it; none of them crashed anything any more.
        self.assertTrue(cluster.coordinator.running())

        cluster.llmctl("resume", bad_id)

        cluster.wait_until("it trains again, from its checkpoint",
                           lambda: bad.generations() == [1, 2] and bad.steps_of(2))
        self.assertGreater(min(bad.steps_of(2)), 1)
        self.assertIn("nothing is in quarantine", cluster.llmctl("admin", "quarantine").stdout)


if __name__ == "__main__":
    unittest.main()
