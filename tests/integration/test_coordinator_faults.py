#!/usr/bin/env python3
"""The coordinator's own faults while a job trains: it stands still, its disk is full.

Neither may cost the job anything: it keeps its attempt, its hosts keep their leases, and what was acknowledged to users
is there afterwards.
"""

import contextlib
import os
import pathlib
import signal
import time
import unittest

from cluster import Cluster, Daemon
from cluster_test_case import SUCCEEDED, ClusterTestCase
from training_job import Job

# Several leases; the long form of the test is half a minute.
STALL_SECONDS = float(os.environ.get("LLMCTL_TEST_STALL_SECONDS", "5"))
# No longer than the longest pause of an agent between two attempts to connect, so that what was left of a lease when
# the coordinator stopped is not enough.
LEASE = "2s"
EXTENDED_SECONDS_MAX = 8
STORE_BYTES = 8 << 20


class CoordinatorFaults(ClusterTestCase):
    def start_job(self, cluster: Cluster, steps: int) -> tuple[Job, str]:
        self.addCleanup(cluster.close)
        self.addCleanup(self._describe_after_failure, cluster)
        cluster.start()
        job = Job("undisturbed", cluster.root / "checkpoints", steps=steps, hosts=len(cluster.workers))
        job_id = self.submit(cluster, job)
        self.wait_for_step(cluster, job, 5)
        return job, job_id

    @staticmethod
    def welcomes(worker: Daemon) -> int:
        return worker.log.read_text().count("coordinator-welcomed")

    def assert_nothing_noticed(self, cluster: Cluster, job: Job, job_id: str):
        self.assertNotIn("lease-expired", cluster.coordinator.log.read_text())
        view = cluster.json("get", job_id)
        self.assertEqual(view["attempt"], 1)
        self.assertEqual(len(job.generations()), 1)

    def test_coordinator_that_stands_still_costs_no_host_its_lease(self):
        cluster = Cluster(devices=(1, 1), lease=LEASE)
        job, job_id = self.start_job(cluster, steps=100000)

        welcomed = [self.welcomes(worker) for worker in cluster.workers]
        before = job.last_step()
        os.kill(cluster.coordinator.pid, signal.SIGSTOP)
        until = time.monotonic() + STALL_SECONDS
        cluster.wait_until("the coordinator has stood still for long enough", lambda: time.monotonic() > until,
                           2 * STALL_SECONDS)
        os.kill(cluster.coordinator.pid, signal.SIGCONT)
        trained = job.last_step()

        # They hung up meanwhile, and are back before their leases end.
        cluster.wait_until("the hosts are welcomed again", lambda: all(
            self.welcomes(worker) > count for worker, count in zip(cluster.workers, welcomed)))
        self.assertGreater(trained, before)
        self.assertIn("coordinator-stalled", cluster.coordinator.log.read_text())
        # Longer than any lease can have been extended: whoever is not back would be lost by then.
        after = time.monotonic() + EXTENDED_SECONDS_MAX
        cluster.wait_until("the extended leases would have ended", lambda: time.monotonic() > after)
        self.assert_nothing_noticed(cluster, job, job_id)
        self.assertGreater(job.last_step(), trained)
        cluster.llmctl("cancel", job_id)

    def test_full_disk_refuses_submissions_and_the_job_goes_on(self):
        if os.geteuid() != 0:
            self.skipTest("NOT RUN: a small disk of its own for the coordinator needs root")
        cluster = Cluster(devices=(2,))
        store = cluster.root / "coordinator"
        store.mkdir()
        # A mount of the coordinator's alone, gone with it.
        cluster.coordinator.command[:0] = [
            "unshare", "--mount", "--propagation=unchanged", "sh", "-c",
            f'mount --make-rprivate / 2>/dev/null; mount -t tmpfs -o size={STORE_BYTES} none "{store}" && exec "$@"',
            "sh"]
        job, job_id = self.start_job(cluster, steps=120)
        kept = self.submit(cluster, Job("kept", cluster.root / "kept", hosts=2))
        filler = pathlib.Path(f"/proc/{cluster.coordinator.pid}/root{store}/filler")

        fill(filler)
        refused = [cluster.llmctl("submit", Job(name, cluster.root / name, hosts=2).write(cluster.root), check=False)
                   for name in ("in-doubt", "refused")]
        committed = cluster.json("get", job_id).get("checkpoint", {}).get("step", 0)
        step = job.last_step()
        self.wait_for_step(cluster, job, step + 2 * job.checkpoint_every)
        self.assertEqual(cluster.json("get", job_id).get("checkpoint", {}).get("step", 0), committed)
        filler.unlink()

        for answer in refused:
            self.assertNotEqual(answer.returncode, 0, answer.stdout)
            self.assertIn("cannot write its store", answer.stderr)
            self.assertIn("full", answer.stderr)
        cluster.wait_until("submissions are taken again", lambda: cluster.llmctl(
            "submit", Job("afterwards", cluster.root / "afterwards", hosts=2).write(cluster.root),
            "--idempotency-key=afterwards", check=False).returncode == 0)
        self.wait_for_phase(cluster, job_id, SUCCEEDED)
        self.assert_nothing_noticed(cluster, job, job_id)
        names = [view["name"] for view in cluster.json("list")["jobs"]]
        self.assertIn(kept, [view["id"] for view in cluster.json("list")["jobs"]])
        self.assertEqual(names.count("afterwards"), 1)
        self.assertNotIn("refused", names)


def fill(path: pathlib.Path):
    """Takes all that is left of the disk."""
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass


if __name__ == "__main__":
    unittest.main()
