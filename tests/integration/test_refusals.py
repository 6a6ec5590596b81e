#!/usr/bin/env python3
"""What llmctl will not do, and whether it says why: mistakes of the user, hosts that share no disk, cancelled jobs."""

import os
import signal
import subprocess
import unittest

from cluster import bin_folder
from cluster_test_case import CANCELLED, FAILED, SUCCEEDED, ClusterTestCase
from training_job import Job


class Refusals(ClusterTestCase):
    def test_misspelt_field_is_answered_with_place_and_likely_name(self):
        cluster = self.start_cluster()
        job = Job("misspelt", cluster.root / "checkpoints")
        path = cluster.root / "misspelt.yaml"
        lines = job.yaml().replace("globalBatchSize", "globalBatchSzie").splitlines(keepends=True)
        path.write_text("".join(lines))
        line = 1 + next(number for number, text in enumerate(lines) if "globalBatchSzie" in text)

        answer = cluster.llmctl("submit", path, check=False)

        self.assertEqual(answer.returncode, 2, answer.stderr)
        self.assertIn(f"misspelt.yaml:{line}:", answer.stderr)
        self.assertIn("globalBatchSzie", answer.stderr)
        self.assertRegex(answer.stderr, r"mean.*globalBatchSize")
        self.assertEqual(cluster.json("list").get("jobs", []), [])

    def test_job_on_a_missing_dataset_fails_for_good_and_says_why(self):
        cluster = self.start_cluster()
        missing = cluster.root / "no-such-dataset"
        job = Job("no-data", cluster.root / "checkpoints", dataset=missing)
        job_id = self.submit(cluster, job)

        waited = cluster.llmctl("wait", job_id, check=False)

        self.assertEqual(waited.returncode, 1, waited.stderr)
        view = self.wait_for_phase(cluster, job_id, FAILED)
        self.assertEqual((view["failureClass"], view["failureOutlook"]), ("user", "never"))
        self.assertIn(str(missing), view["reason"])
        self.assertEqual(view["attempt"], 1)

    def test_cancelled_job_stops_and_stays_cancelled(self):
        cluster = self.start_cluster()
        job = Job("cancelled", cluster.root / "checkpoints", steps=100000)
        job_id = self.submit(cluster, job)
        self.wait_for_step(cluster, job, 3)

        cluster.llmctl("cancel", job_id)

        self.wait_for_phase(cluster, job_id, CANCELLED)
        cluster.wait_until("no trainer is left", lambda: not cluster.processes("llm-trainer"))
        self.assertEqual(cluster.llmctl("wait", job_id, check=False).returncode, 5)
        self.assertNotEqual(cluster.llmctl("resume", job_id, check=False).returncode, 0)

    def test_hosts_with_private_disks_are_told_apart_before_the_first_step(self):
        if os.geteuid() != 0:
            self.skipTest("NOT RUN: mounting a private disk for one worker needs root")
        cluster = self.start_cluster(devices=(1,))
        job = Job("private-disks", cluster.root / "checkpoints", hosts=2)
        job.directory.mkdir()
        # In a chroot the root is no mount point, and there is nothing to make private.
        private = ("unshare", "--mount", "--propagation=unchanged", "sh", "-c",
                   f'mount --make-rprivate / 2>/dev/null; mount -t tmpfs none "{job.directory}" && exec "$@"', "sh")
        stranger = cluster.worker("stranger", 1, private)
        cluster.workers.append(stranger)
        stranger.start()
        cluster.wait_until("both hosts are ready", lambda: len(cluster.ready_nodes()) == 2)
        job_id = self.submit(cluster, job)

        view = self.wait_for_phase(cluster, job_id, FAILED)

        self.assertEqual((view["failureClass"], view["failureOutlook"]), ("user", "never"))
        for expected in ("host-0", "stranger", str(job.directory)):
            self.assertIn(expected, view["reason"])
        self.assertEqual(job.last_step(), 0)

    def test_disk_that_hangs_holds_up_neither_other_jobs_nor_the_end_of_the_worker(self):
        cluster = self.start_cluster(devices=(4,))
        hangs = cluster.root / "hangs"
        hangs.mkdir()
        # Whoever opens it waits for somebody who writes to it.
        os.mkfifo(hangs / "manifest.json")
        waiting = self.submit(cluster, Job("waiting", cluster.root / "others", dataset=hangs))
        self.wait_for_phase(cluster, waiting, "starting")
        sound = self.submit(cluster, Job("sound", cluster.root / "checkpoints", steps=5))

        self.wait_for_phase(cluster, sound, SUCCEEDED)

        cluster.workers[0].kill(signal.SIGTERM)

    def test_address_that_others_can_reach_needs_a_word_of_consent(self):
        cluster = self.start_cluster()
        command = [bin_folder() / "llm-coordinator", f"--data-dir={cluster.root / 'open'}", "--listen=0.0.0.0:0",
                   f"--address-file={cluster.root / 'open-address'}"]

        refused = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)

        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("--insecure-listen", refused.stderr)

    def test_coordinator_that_is_not_there_is_named(self):
        cluster = self.start_cluster()
        address = cluster.address_file.read_text().strip()
        cluster.coordinator.kill()

        answer = cluster.llmctl("list", check=False)

        self.assertEqual(answer.returncode, 4, answer.stderr)
        self.assertIn(address, answer.stderr)


if __name__ == "__main__":
    unittest.main()
