#!/usr/bin/env python3
"""Disks that are full and checkpoints that are damaged: a run goes on while it can, and says why when it cannot."""

import os
import pathlib
import signal
import unittest

from cluster import Cluster
from cluster_test_case import FAILED, SUCCEEDED, ClusterTestCase
from lab import SmallDisk, leave_the_machines_mounts
from training_job import Job

STEPS = 60
DISTURBED_AT = 25
# Some checkpoints of 40 MB.
DISK_MIB = 256


class CheckpointDisk(ClusterTestCase):
    def setUp(self):
        leave_the_machines_mounts()

    def start_job(self, **options) -> tuple[Cluster, SmallDisk, Job, str]:
        cluster = self.start_cluster()
        disk = SmallDisk(cluster.root / "disk", DISK_MIB)
        self.addCleanup(disk.close)
        job = Job("full", disk.path / "checkpoints", steps=STEPS, **options)
        job_id = self.submit(cluster, job)
        self.wait_for_step(cluster, job, DISTURBED_AT)
        return cluster, disk, job, job_id

    def test_training_goes_on_while_the_disk_is_full_and_saves_when_there_is_room(self):
        cluster, disk, job, job_id = self.start_job()

        # Filling it takes a busy machine as long as many steps.
        trainers = cluster.trainers()
        for trainer in trainers:
            os.kill(trainer, signal.SIGSTOP)
        disk.fill()
        for trainer in trainers:
            os.kill(trainer, signal.SIGCONT)
        # From the log itself: llmctl takes as long.
        output = next(cluster.root.glob("host-0/shims/*-a1-g1-r0")) / "stdout.log"
        cluster.wait_until("a save has failed, and training goes on without it",
                           lambda: output.read_text().rpartition("SAVE FAILED")[2].count("step ") > 3
                           and "SAVE FAILED" in output.read_text())
        disk.empty()

        view = self.wait_for_phase(cluster, job_id, SUCCEEDED)
        self.assertEqual(view["attempt"], 1)
        self.assertEqual(view["checkpoint"]["step"], STEPS)
        self.assert_undisturbed(job)
        self.assertEqual(job.torn_checkpoints(), [])

    def test_job_whose_disk_stays_full_fails_and_names_the_disk(self):
        cluster, disk, job, job_id = self.start_job(extra="faultTolerance:\n  maxAttemptsWithoutProgress: 2\n")

        disk.fill()

        view = self.wait_for_phase(cluster, job_id, FAILED)
        self.assertEqual(view["failureClass"], "infrastructure")
        for expected in (str(job.directory), "No space left on device"):
            self.assertIn(expected, view["reason"])


class DamagedCheckpoints(ClusterTestCase):
    def start_job(self) -> tuple[Cluster, Job, str, list[pathlib.Path]]:
        """With the two committed checkpoints, newest first. The trainers stand still: there will be no newer one."""
        cluster = self.start_cluster()
        job = Job("damaged", cluster.root / "checkpoints", steps=STEPS)
        job_id = self.submit(cluster, job)
        self.wait_for_step(cluster, job, DISTURBED_AT)
        for trainer in cluster.trainers():
            os.kill(trainer, signal.SIGSTOP)
        committed = cluster.wait_until("two checkpoints are committed", lambda: self.committed(cluster, job_id))
        return cluster, job, job_id, committed

    @staticmethod
    def committed(cluster: Cluster, job_id: str) -> list[pathlib.Path] | None:
        found = cluster.json("checkpoints", job_id).get("checkpoints", [])
        return [pathlib.Path(checkpoint["path"]) for checkpoint in found] if len(found) == 2 else None

    @staticmethod
    def kill_trainers(cluster: Cluster):
        for trainer in cluster.trainers():
            os.kill(trainer, signal.SIGKILL)

    @staticmethod
    def damage(checkpoint: pathlib.Path):
        """One bit, in the midst of the weights."""
        with (checkpoint / "model.safetensors").open("r+b") as file:
            file.seek(os.path.getsize(file.name) // 2)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 1]))

    def test_damaged_newest_checkpoint_is_passed_over_and_named(self):
        cluster, job, job_id, committed = self.start_job()

        self.damage(committed[0])
        self.kill_trainers(cluster)

        view = self.wait_for_phase(cluster, job_id, SUCCEEDED)
        self.assertEqual(view["attempt"], 2)
        said = cluster.logs_of(job_id, 0, "--attempt=2")
        self.assertIn("CHECKPOINT PASSED OVER", said)
        self.assertIn(str(committed[0]), said)
        self.assertEqual(job.steps_of(2)[0], int(committed[1].name.split("-")[1]) + 1)
        self.assert_undisturbed(job)

    def test_job_whose_checkpoints_are_all_damaged_fails_and_says_so(self):
        cluster, job, job_id, committed = self.start_job()

        for checkpoint in committed:
            self.damage(checkpoint)
        self.kill_trainers(cluster)

        view = self.wait_for_phase(cluster, job_id, FAILED)
        self.assertEqual((view["failureClass"], view["failureOutlook"]), ("user", "never"))
        self.assertIn("none of the 2 checkpoints to resume from is usable", view["reason"])


if __name__ == "__main__":
    unittest.main()
