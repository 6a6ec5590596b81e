#!/usr/bin/env python3
"""Each process killed in the one moment where it hurts most: each phase of a step and of a checkpoint.

The moment is a failpoint in the code; that it was met is asserted by its hit count. Hits are counted over both ranks,
and their numbers are chosen so that two checkpoints are committed before. A trainer is killed at the failpoint itself;
for the others it stands still there, until the kill has been done from outside.
"""

import os
import pathlib
import signal
import unittest

from cluster import Cluster
from cluster_test_case import SUCCEEDED, ClusterTestCase
from failpoints import Failpoints
from training_job import Job

STEPS = 60
RANKS = 2
LAYERS = 4
# Each rank sums three times a step: its tokens, its gradients, its loss.
SUMS = 3
# Into the third checkpoint interval: after step 20, before step 30.
STEP = 27
# Name of the phase -> failpoint, hit, steps from which the job may be resumed.
PHASES = {
    "in_the_midst_of_a_forward_pass": ("model.forward", RANKS * LAYERS * STEP + LAYERS // 2, (21,)),
    "in_the_midst_of_an_all_reduce": ("collective.all_reduce", RANKS * SUMS * STEP + RANKS + 1, (21,)),
    "between_norm_and_update": ("step.before_update", RANKS * STEP, (21,)),
    # The tensors of two checkpoints and some of the third.
    "in_the_midst_of_writing_a_checkpoint": ("checkpoint.write", 300, (21,)),
    # The third checkpoint is whole on disk, and is none: nobody committed it.
    "between_fsync_and_commit": ("checkpoint.before_commit", 3, (21,)),
}


def state_of(pid: int) -> str:
    """As the kernel has it: R, S, T (stopped), ...; nothing if there is no such process."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


class Phases(ClusterTestCase):
    def start_job(self, phase: str, action: str) -> tuple[Cluster, Job, str]:
        name, hit, _ = PHASES[phase]
        # A lease that an agent which is away for some steps keeps, even on a busy machine.
        cluster = self.start_cluster(lease="10s")
        self.failpoints = Failpoints(cluster.root, f"{name}={action}@{hit}")
        job = Job("phases", cluster.root / "checkpoints", steps=STEPS, extra=self.failpoints.job_section())
        return cluster, job, self.submit(cluster, job)

    def stopped_trainer(self, cluster: Cluster) -> int:
        return cluster.wait_until("a trainer stands still at the failpoint", lambda: next(
            (pid for pid in cluster.trainers() if state_of(pid) == "T"), None))

    def assert_survived(self, cluster: Cluster, job: Job, job_id: str, phase: str, attempts: int):
        view = self.wait_for_phase(cluster, job_id, SUCCEEDED)

        name, hit, resumed = PHASES[phase]
        self.assertGreater(self.failpoints.hits(name), hit, "it was not met, or training did not go on after it")
        self.assertEqual(view["attempt"], attempts)
        self.assertEqual(job.generations(), list(range(1, attempts + 1)))
        if attempts > 1:
            self.assertIn(job.steps_of(2)[0], resumed)
        self.assert_undisturbed(job)
        self.assertEqual(job.torn_checkpoints(), [], "what a crash left half-written is replaced or removed")

    def kill_trainer(self, phase: str):
        cluster, job, job_id = self.start_job(phase, "kill")

        self.assert_survived(cluster, job, job_id, phase, attempts=2)

    def kill_shim(self, phase: str):
        cluster, job, job_id = self.start_job(phase, "stop")
        trainer = self.stopped_trainer(cluster)

        shim = int(pathlib.Path(f"/proc/{trainer}/stat").read_text().rpartition(") ")[2].split()[1])
        self.assertIn(shim, cluster.processes("llm-shim"))
        os.kill(shim, signal.SIGKILL)

        self.assert_survived(cluster, job, job_id, phase, attempts=2)

    def kill_agent(self, phase: str):
        cluster, job, job_id = self.start_job(phase, "stop")
        trainer = self.stopped_trainer(cluster)

        cluster.workers[0].kill()
        os.kill(trainer, signal.SIGCONT)
        self.wait_for_step(cluster, job, job.last_step() + 2)
        cluster.workers[0].start()

        self.assert_survived(cluster, job, job_id, phase, attempts=1)

    def kill_coordinator(self, phase: str):
        cluster, job, job_id = self.start_job(phase, "stop")
        trainer = self.stopped_trainer(cluster)

        cluster.coordinator.kill()
        os.kill(trainer, signal.SIGCONT)
        self.wait_for_step(cluster, job, job.last_step() + 2)
        cluster.start_coordinator()

        self.assert_survived(cluster, job, job_id, phase, attempts=1)

    def kill_everything(self, phase: str):
        cluster, job, job_id = self.start_job(phase, "stop")
        self.stopped_trainer(cluster)

        cluster.kill_everything()
        cluster.start()

        self.assert_survived(cluster, job, job_id, phase, attempts=2)


def _add_cases():
    for victim in ("trainer", "shim", "agent", "coordinator", "everything"):
        for phase in PHASES:
            def case(self, kill=f"kill_{victim}", phase=phase):
                getattr(self, kill)(phase)

            setattr(Phases, f"test_{victim}_killed_{phase}", case)


_add_cases()


if __name__ == "__main__":
    unittest.main()
