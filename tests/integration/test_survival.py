#!/usr/bin/env python3
"""What is killed while a job trains, and what the job makes of it.

Every case runs the same job as one run that nobody disturbs, and demands its losses bit by bit and each sample once.
"""

import os
import signal
import unittest

from cluster import Cluster
from cluster_test_case import FAILED, SUCCEEDED, SUSPENDED, ClusterTestCase
from training_job import Job

STEPS = 80
# Before it something is killed: after the first checkpoints, well before the end.
DISTURBED_AT = 25


class Survival(ClusterTestCase):
    def start_job(self, devices: tuple[int, ...] = (2,)) -> tuple[Cluster, Job, str]:
        cluster = self.start_cluster(devices)
        job = Job("disturbed", cluster.root / "checkpoints", steps=STEPS, hosts=len(devices))
        job_id = self.submit(cluster, job)
        self.wait_for_step(cluster, job, DISTURBED_AT)
        return cluster, job, job_id

    def assert_recovered(self, cluster: Cluster, job: Job, job_id: str):
        """One failure of the infrastructure, resumed from a checkpoint and not from the start."""
        view = self.wait_for_phase(cluster, job_id, SUCCEEDED)
        self.assertEqual(view["attempt"], 2)
        events = cluster.json("events", job_id)["events"]
        self.assertTrue(any("infrastructure" in event["text"] for event in events), events)
        first, second = job.generations()
        resumed = min(job.steps_of(second))
        self.assertGreater(resumed, 1)
        self.assertEqual((resumed - 1) % job.checkpoint_every, 0)
        self.assertLessEqual(resumed, max(job.steps_of(first)) + 1)
        self.assert_undisturbed(job)

    def test_killed_trainer_is_resumed_from_the_checkpoint(self):
        cluster, job, job_id = self.start_job()

        os.kill(max(cluster.processes("llm-trainer")), signal.SIGKILL)

        self.assert_recovered(cluster, job, job_id)

    def test_trainer_killed_on_one_of_two_hosts_stops_its_peer_and_both_resume(self):
        cluster, job, job_id = self.start_job(devices=(1, 1))

        os.kill(max(cluster.processes("llm-trainer")), signal.SIGKILL)

        self.assert_recovered(cluster, job, job_id)
        self.assertEqual({rank["node"] for rank in cluster.json("get", job_id)["ranks"]}, {"host-0", "host-1"})

    def test_everything_killed_at_once_comes_back_and_goes_on(self):
        cluster, job, job_id = self.start_job()

        cluster.kill_everything()
        cluster.start()

        self.assert_recovered(cluster, job, job_id)

    def test_killed_shim_takes_its_trainer_along_and_the_job_is_resumed(self):
        cluster, job, job_id = self.start_job()
        trainers = set(cluster.processes("llm-trainer"))

        os.kill(min(cluster.processes("llm-shim")), signal.SIGKILL)

        cluster.wait_until("the trainers of the first attempt are gone",
                           lambda: not trainers & set(cluster.processes("llm-trainer")))
        self.assert_recovered(cluster, job, job_id)

    def test_killed_agent_adopts_its_trainers_again_and_no_step_is_lost(self):
        cluster, job, job_id = self.start_job()
        trainers = set(cluster.processes("llm-trainer"))
        agent = cluster.workers[0]

        agent.kill()
        self.wait_for_step(cluster, job, job.last_step() + 3)
        agent.start()

        cluster.wait_until("the new agent is known", lambda: cluster.ready_nodes() == [agent.name])
        self.assertEqual(set(cluster.processes("llm-trainer")), trainers)
        view = self.wait_for_phase(cluster, job_id, SUCCEEDED)
        self.assertEqual(view["attempt"], 1)
        self.assertEqual(len(job.generations()), 1)
        self.assert_undisturbed(job)

    def test_training_does_not_notice_that_the_coordinator_is_killed(self):
        cluster, job, job_id = self.start_job()

        cluster.coordinator.kill()
        killed_at = job.last_step()
        # Far enough that a checkpoint falls due while nobody can commit it.
        away_until = killed_at + 2 * job.checkpoint_every
        self.wait_for_step(cluster, job, away_until)
        offered = max(int(path.name.split("-")[1]) for path in job.directory.rglob("step-*") if path.is_dir())
        cluster.start_coordinator()

        self.assertGreater(offered, killed_at)
        cluster.wait_until("the checkpoint made meanwhile is committed",
                           lambda: cluster.json("get", job_id).get("checkpoint", {}).get("step", 0) >= offered)
        view = self.wait_for_phase(cluster, job_id, SUCCEEDED)
        self.assertEqual(view["attempt"], 1)
        self.assertEqual(len(job.generations()), 1)
        curve = job.curve()
        usual = sorted(curve[step]["step_seconds"] for step in range(5, killed_at))
        away = [curve[step]["step_seconds"] for step in range(killed_at, away_until)]
        # Nobody waited for the coordinator: the dearest step costs what the dearest ones cost before, and a margin
        # for a busy machine, far below any timeout that a lost coordinator could cause.
        self.assertLess(max(away), max(1.0, 3 * usual[-1]))
        self.assert_undisturbed(job)

    def test_suspended_job_gives_up_its_devices_and_resumes_bit_by_bit(self):
        cluster, job, job_id = self.start_job()

        cluster.llmctl("suspend", job_id)
        self.wait_for_phase(cluster, job_id, SUSPENDED)
        suspended_at = job.last_step()
        cluster.wait_until("the devices are free", lambda: not cluster.processes("llm-trainer"))
        self.assertLess(suspended_at, STEPS)
        cluster.llmctl("resume", job_id)

        self.wait_for_phase(cluster, job_id, SUCCEEDED)
        # A suspended job saves what it has: no step is taken twice.
        self.assertEqual(min(job.steps_of(job.generations()[-1])), suspended_at + 1)
        self.assert_undisturbed(job)

    def test_logs_of_a_failed_job_and_of_its_earlier_attempts_can_be_read(self):
        cluster = self.start_cluster()
        job = Job("doomed", cluster.root / "checkpoints", steps=100000, checkpoint_every=100000,
                  extra="faultTolerance:\n  maxAttemptsWithoutProgress: 2\n")
        job_id = self.submit(cluster, job)
        for generation in (1, 2):
            cluster.wait_until(f"attempt {generation} trains",
                               lambda: job.generations()[-1:] == [generation] and job.steps_of(generation))
            os.kill(max(cluster.processes("llm-trainer")), signal.SIGKILL)
        self.wait_for_phase(cluster, job_id, FAILED)

        cluster.wait_until("the shims have been released", lambda: not cluster.processes("llm-shim"))

        for arguments in (["--attempt=1"], ["--attempt=2"], []):
            for rank in (0, 1):
                logs = [cluster.llmctl("logs", job_id, f"--rank={rank}", *arguments, *stream).stdout
                        for stream in ([], ["--stderr"])]
                self.assertGreater(len("".join(logs)), 0, (arguments, rank))
        refused = cluster.llmctl("logs", job_id, "--attempt=3", check=False)
        self.assertEqual(refused.returncode, 3, refused.stderr)
        self.assertIn("has had attempts 1 to 2", refused.stderr)


if __name__ == "__main__":
    unittest.main()
