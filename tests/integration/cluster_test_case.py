"""unittest.TestCase with a cluster: started for the case, described when the case fails, always cleaned up."""

import sys
import unittest

from cluster import Cluster
from training_job import Job

# From the submission of a job to its end, on a busy machine.
JOB_SECONDS = 120
STEP_SECONDS = 60


class ClusterTestCase(unittest.TestCase):
    def run(self, result=None):
        self._result = result
        return super().run(result)

    def start_cluster(self, devices: tuple[int, ...] = (2,)) -> Cluster:
        cluster = Cluster(devices)
        self.addCleanup(cluster.close)
        self.addCleanup(self._describe_after_failure, cluster)
        cluster.start()
        return cluster

    def _describe_after_failure(self, cluster: Cluster):
        if any(case is self for case, _ in self._result.failures + self._result.errors):
            print(f"=== the cluster of {self.id()} ===\n{cluster.describe()}", file=sys.stderr)

    def submit(self, cluster: Cluster, job: Job, *arguments) -> str:
        return cluster.json("submit", job.write(cluster.root), *arguments)["id"]

    def wait_for_phase(self, cluster: Cluster, job_id: str, phase: str, seconds: float = JOB_SECONDS) -> dict:
        def reached():
            job = cluster.json("get", job_id)
            if job["phase"] != phase and job["phase"] in ENDS:
                raise AssertionError(f"job {job_id} ended {job['phase']}, not {phase}: {job.get('reason')}")
            return job if job["phase"] == phase else None

        return cluster.wait_until(f"job {job_id} is {phase}", reached, seconds)

    def wait_for_step(self, cluster: Cluster, job: Job, step: int):
        """Reads the curve, not the coordinator: it may be away. A job that will not get there shows in its attempts."""
        def reached():
            if len(job.generations()) > 1:
                raise AssertionError(f"job {job.name} was restarted before step {step}: {cluster.describe()}")
            return job.last_step() >= step

        cluster.wait_until(f"job {job.name} has done step {step}", reached, STEP_SECONDS)


SUCCEEDED, FAILED, CANCELLED, SUSPENDED = "succeeded", "failed", "cancelled", "suspended"
ENDS = (SUCCEEDED, FAILED, CANCELLED)
