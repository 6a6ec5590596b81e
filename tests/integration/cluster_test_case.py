"""unittest.TestCase with a cluster: started for the case, described when the case fails, always cleaned up."""

import functools
import signal
import sys
import unittest

from cluster import Cluster
from final_sequence import FinalSequence, final_sequence
from training_job import Job

# From the submission of a job to its end, on a busy machine.
JOB_SECONDS = 120
STEP_SECONDS = 60


@functools.cache
def undisturbed_losses(steps: int) -> list[tuple[int, float]]:
    """Of the usual job on two ranks, when nothing happens to it. Trained once per test program."""
    cluster = Cluster()
    try:
        cluster.start()
        job = Job("undisturbed", cluster.root / "checkpoints", steps=steps)
        cluster.llmctl("submit", job.write(cluster.root))
        cluster.llmctl("wait", job.name, seconds=JOB_SECONDS)
        return final_sequence(job).losses
    finally:
        for daemon in (*cluster.workers, cluster.coordinator):
            daemon.kill(signal.SIGTERM)
        cluster.close()


class ClusterTestCase(unittest.TestCase):
    def run(self, result=None):
        self._result = result
        return super().run(result)

    def start_cluster(self, devices: tuple[int, ...] = (2,), **options) -> Cluster:
        cluster = Cluster(devices, **options)
        self.addCleanup(cluster.close)
        self.addCleanup(self._describe_after_failure, cluster)
        cluster.start()
        return cluster

    def _describe_after_failure(self, cluster: Cluster):
        if any(case is self for case, _ in self._result.failures + self._result.errors):
            print(f"=== the cluster of {self.id()} ===\n{cluster.describe()}", file=sys.stderr)

    def assert_undisturbed(self, job: Job) -> FinalSequence:
        """The samples consumed are the permutation, each once, and the losses are bitwise the undisturbed run's."""
        final = final_sequence(job)
        self.assertEqual((final.lost, final.repeated), ([], []))
        self.assertEqual(final.losses, undisturbed_losses(job.steps))
        return final

    def submit(self, cluster: Cluster, job: Job, *arguments) -> str:
        return cluster.json("submit", job.write(cluster.root), *arguments)["id"]

    def wait_for_phase(self, cluster: Cluster, job_id: str, phase: str, seconds: float = JOB_SECONDS) -> dict:
        def reached():
            job = cluster.json("get", job_id)
            if job["phase"] != phase and job["phase"] in ENDS:
                raise AssertionError(f"job {job_id} ended {job['phase']}, not {phase}: {job.get('reason')}")
            return job if job["phase"] == phase else None

        return cluster.wait_until(f"job {job_id} is {phase}", reached, seconds)

    def wait_for_step(self, cluster: Cluster, job: Job, step: int, generation: int = 1):
        """Reads the curve, not the coordinator: it may be away. A job that will not get there shows in its attempts."""
        def reached():
            if any(newer > generation for newer in job.generations()):
                raise AssertionError(f"job {job.name} was restarted before step {step}: {cluster.describe()}")
            return generation in job.generations() and job.last_step() >= step

        cluster.wait_until(f"job {job.name} has done step {step}", reached, STEP_SECONDS)


SUCCEEDED, FAILED, CANCELLED, SUSPENDED = "succeeded", "failed", "cancelled", "suspended"
ENDS = (SUCCEEDED, FAILED, CANCELLED)
