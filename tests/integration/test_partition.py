#!/usr/bin/env python3
"""Hosts that are cut off, and come back when their work has gone on elsewhere. Hosts are network namespaces."""

import unittest

from cluster import Cluster
from cluster_test_case import SUCCEEDED, ClusterTestCase
from lab import Network
from training_job import Job

STEPS = 80
# Where the network is cut: after the first checkpoints, well before the end.
CUT_AT = 25
COORDINATOR, FIRST, SECOND, THIRD = range(4)


class Partition(ClusterTestCase):
    def start_hosts(self, devices: tuple[int, ...]) -> tuple[Network, Cluster]:
        network = Network(1 + len(devices))
        self.addCleanup(network.close)
        return network, self.start_cluster(devices, network=network)

    def test_host_that_was_cut_off_returns_late_and_its_writes_are_refused(self):
        network, cluster = self.start_hosts(devices=(2, 2))
        job = Job("cut", cluster.root / "checkpoints", steps=STEPS)
        job_id = self.submit(cluster, job)
        self.wait_for_step(cluster, job, CUT_AT)
        host = cluster.json("get", job_id)["ranks"][0]["node"]
        stale = set(cluster.trainers(host))
        outbox = cluster.root / host / "outbox"

        network.cut([COORDINATOR], [FIRST if host == "host-0" else SECOND])

        cluster.wait_until("the job goes on elsewhere", lambda: job.generations() == [1, 2] and job.steps_of(2))
        # The stale generation knows nothing of that: it goes on too, and saves what it has.
        cluster.wait_until("the stale generation offers a checkpoint that nobody can commit",
                           lambda: outbox.exists() and outbox.read_text())
        # Rank 0 at least: it waits for the answer if it has come to its end meanwhile.
        self.assertTrue(stale & set(cluster.trainers(host)))
        network.heal()

        cluster.wait_until("the stale trainers are gone", lambda: not stale & set(cluster.trainers(host)))
        cluster.wait_until("its offer is answered", lambda: not outbox.read_text())
        view = self.wait_for_phase(cluster, job_id, SUCCEEDED)
        self.assertEqual(view["attempt"], 2)
        self.assertNotEqual(view["ranks"][0]["node"], host)
        committed = {checkpoint["generation"] for checkpoint in cluster.json("checkpoints", job_id)["checkpoints"]}
        self.assertEqual(committed, {2})
        self.assertGreater(job.steps_of(1)[-1], job.steps_of(2)[0])
        self.assert_undisturbed(job)
        cluster.wait_until("the host is of use again", lambda: len(cluster.ready_nodes()) == 2)

    def test_cut_that_is_shorter_than_the_lease_costs_nothing(self):
        network, cluster = self.start_hosts(devices=(1, 1))
        job = Job("blink", cluster.root / "checkpoints", steps=STEPS, hosts=2)
        job_id = self.submit(cluster, job)
        self.wait_for_step(cluster, job, CUT_AT)

        network.cut([COORDINATOR], [FIRST, SECOND])
        self.wait_for_step(cluster, job, job.last_step() + 5)
        network.heal()

        view = self.wait_for_phase(cluster, job_id, SUCCEEDED)
        self.assertEqual(view["attempt"], 1)
        self.assert_undisturbed(job)

    def test_host_that_is_cut_off_from_all_is_replaced_in_the_gang(self):
        network, cluster = self.start_hosts(devices=(1, 1, 1))
        job = Job("island", cluster.root / "checkpoints", steps=STEPS, hosts=2)
        job_id = self.submit(cluster, job)
        self.wait_for_step(cluster, job, CUT_AT)
        nodes = {rank["node"] for rank in cluster.json("get", job_id)["ranks"]}
        lost = max(nodes)
        stale = set(cluster.trainers(lost))

        island = int(lost.removeprefix("host-")) + 1
        network.cut([island], {COORDINATOR, FIRST, SECOND, THIRD} - {island})
        cluster.wait_until("the job goes on elsewhere", lambda: job.generations() == [1, 2] and job.steps_of(2))
        network.heal()

        view = self.wait_for_phase(cluster, job_id, SUCCEEDED)
        self.assertEqual(view["attempt"], 2)
        self.assertNotIn(lost, {rank["node"] for rank in view["ranks"]})
        self.assert_undisturbed(job)
        cluster.wait_until("the stale trainer is gone", lambda: not stale & set(cluster.trainers(lost)))


if __name__ == "__main__":
    unittest.main()
