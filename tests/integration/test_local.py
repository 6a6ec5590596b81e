#!/usr/bin/env python3
"""`llmctl local`: a supervised cluster on one machine, its daemons killed, its jobs taken down or kept."""

import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import unittest

from cluster import PATIENCE_SECONDS, bin_folder, wait_until, waits_for_a_job
from training_job import Job

UP_SECONDS = 30


class LocalCluster:
    """A folder in which `llmctl local` is run, as a person would."""

    def __init__(self, programs: pathlib.Path | None = None):
        # Short: unix sockets lie below it, and their paths end at 108 bytes.
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="llm-", dir="/tmp"))
        self.programs = programs or bin_folder()
        self.environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.environment.pop("LLMCTL_COORDINATOR", None)

    def command(self, *arguments) -> list[str]:
        return [str(self.programs / "llmctl"), *map(str, arguments)]

    def llmctl(self, *arguments, code: int = 0) -> subprocess.CompletedProcess:
        answer = subprocess.run(self.command(*arguments), capture_output=True, text=True, cwd=self.root,
                                env=self.environment, stdin=subprocess.DEVNULL, timeout=PATIENCE_SECONDS, check=False)
        if answer.returncode != code:
            raise AssertionError(f"llmctl {' '.join(map(str, arguments))} ended with code {answer.returncode}, "
                                 f"expected {code}\n{answer.stdout}{answer.stderr}{self.describe()}")
        return answer

    def json(self, *arguments):
        return json.loads(self.llmctl(*arguments, "-o", "json").stdout)

    def daemons(self) -> dict[str, dict]:
        return {daemon["name"]: daemon for daemon in self.json("local", "status")["daemons"]}

    def ready_nodes(self) -> list[str]:
        return sorted(node["id"] for node in self.json("nodes")["nodes"] if node["state"] == "ready")

    def processes(self, program: str = "") -> dict[int, str]:
        """Pid -> command line of what runs in this folder; of one program without what only waits for a job."""
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    arguments = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                    folder = os.readlink(entry / "cwd")
                except OSError:
                    continue
                ours = folder.startswith(str(self.root)) or any(str(self.root) in argument for argument in arguments)
                wanted = program in os.path.basename(arguments[0]) and not (program and waits_for_a_job(arguments))
                if ours and wanted:
                    found[int(entry.name)] = " ".join(arguments)
        return found

    def kill(self, pid: int, how: signal.Signals = signal.SIGKILL):
        os.kill(pid, how)

    def describe(self) -> str:
        logs = sorted((self.root / ".llmctl" / "logs").glob("*.log"))
        return "".join(f"\n--- {log.name}\n{log.read_text(errors='replace')[-2500:]}" for log in logs)

    def close(self):
        subprocess.run(self.command("local", "down", "--yes"), cwd=self.root, env=self.environment, check=False,
                       capture_output=True, stdin=subprocess.DEVNULL, timeout=PATIENCE_SECONDS)
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        wait_until("the cluster's processes are gone", lambda: not self.processes())
        shutil.rmtree(self.root, ignore_errors=True)


class Local(unittest.TestCase):
    def make_cluster(self, programs: pathlib.Path | None = None) -> LocalCluster:
        cluster = LocalCluster(programs)
        self.addCleanup(cluster.close)
        return cluster

    def test_up_returns_when_all_is_ready_and_may_be_repeated(self):
        cluster = self.make_cluster()
        began = time.monotonic()

        cluster.llmctl("local", "up", "--workers=2")

        self.assertLess(time.monotonic() - began, UP_SECONDS)
        self.assertEqual(cluster.ready_nodes(), ["worker-0", "worker-1"])
        before = cluster.daemons()
        self.assertEqual(sorted(before), ["coordinator", "worker-0", "worker-1"])
        again = cluster.llmctl("local", "up", "--workers=2")
        self.assertIn("already", again.stdout)
        self.assertEqual(cluster.daemons(), before)
        other = cluster.llmctl("local", "up", "--workers=3", code=6)
        self.assertIn("found one up with 2", other.stderr)
        table = cluster.llmctl("local", "status").stdout
        self.assertRegex(table, r"coordinator +\d+ +running +0 +- +127\.0\.0\.1:\d+")

    def test_killed_daemons_come_back(self):
        cluster = self.make_cluster()
        cluster.llmctl("local", "up", "--workers=2")
        before = cluster.daemons()

        cluster.kill(before["worker-1"]["pid"])
        cluster.kill(before["coordinator"]["pid"])

        def restarted():
            now = cluster.daemons()
            return all(now[name]["restarts"] == 1 and now[name]["pid"] not in (0, before[name]["pid"])
                       for name in ("coordinator", "worker-1"))

        wait_until("both are restarted", restarted, describe=cluster.describe)
        wait_until("all workers are ready", lambda: cluster.ready_nodes() == ["worker-0", "worker-1"],
                   describe=cluster.describe)
        self.assertEqual(cluster.daemons()["coordinator"]["lastEnd"], "signal 9")
        self.assertEqual(cluster.daemons()["worker-0"]["pid"], before["worker-0"]["pid"])

    def test_down_leaves_nothing_behind(self):
        cluster = self.make_cluster()
        cluster.llmctl("local", "up", "--workers=2")
        job = Job("taken-down", cluster.root / "checkpoints", steps=100000, hosts=2)
        job_id = cluster.json("submit", job.write(cluster.root))["id"]
        wait_until("the job trains", lambda: job.last_step() >= 2, describe=cluster.describe)

        down = cluster.llmctl("local", "down")

        self.assertIn(f"cancelled {job_id}", down.stdout)
        self.assertEqual(cluster.processes(), {})
        cluster.llmctl("local", "status", code=3)
        self.assertIn("no local cluster", cluster.llmctl("local", "down").stdout)

    def test_kept_jobs_are_taken_over_by_the_next_cluster(self):
        cluster = self.make_cluster()
        cluster.llmctl("local", "up", "--workers=2")
        job = Job("kept", cluster.root / "checkpoints", steps=100000, hosts=2)
        job_id = cluster.json("submit", job.write(cluster.root))["id"]
        wait_until("the job trains", lambda: job.last_step() >= 2, describe=cluster.describe)

        down = cluster.llmctl("local", "down", "--keep-jobs")
        self.assertIn("go on", down.stdout)
        trainers = sorted(cluster.processes("llm-trainer"))
        self.assertEqual(len(trainers), 2)
        step = job.last_step()
        cluster.llmctl("local", "up", "--workers=2")

        wait_until("the job goes on", lambda: job.last_step() > step + 2, describe=cluster.describe)
        wait_until("the coordinator knows it runs", lambda: cluster.json("get", job_id)["phase"] == "running",
                   describe=cluster.describe)
        self.assertEqual(sorted(cluster.processes("llm-trainer")), trainers, "processes were replaced")
        self.assertEqual(cluster.json("get", job_id)["attempt"], 1)

    def test_follow_survives_a_restart_of_the_coordinator(self):
        cluster = self.make_cluster()
        cluster.llmctl("local", "up", "--workers=2")
        job = Job("followed", cluster.root / "checkpoints", steps=300, hosts=2)
        follower = subprocess.Popen(cluster.command("submit", "--follow", job.write(cluster.root)), cwd=cluster.root,
                                    env=cluster.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, text=True)
        self.addCleanup(follower.kill)
        wait_until("the job trains", lambda: job.last_step() >= 2, describe=cluster.describe)

        cluster.kill(cluster.daemons()["coordinator"]["pid"])
        said, _ = follower.communicate(timeout=2 * PATIENCE_SECONDS)

        self.assertEqual(follower.returncode, 0, said)
        self.assertRegex(said, r"followed succeeded")
        self.assertIn(str(job.directory), said)

    def test_ctrl_c_leaves_the_job_alone(self):
        cluster = self.make_cluster()
        cluster.llmctl("local", "up", "--workers=2")
        job = Job("left-alone", cluster.root / "checkpoints", steps=100000, hosts=2)
        follower = subprocess.Popen(cluster.command("submit", "--follow", job.write(cluster.root)), cwd=cluster.root,
                                    env=cluster.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, text=True)
        self.addCleanup(follower.kill)
        wait_until("the job trains", lambda: job.last_step() >= 2, describe=cluster.describe)

        follower.send_signal(signal.SIGINT)
        said, _ = follower.communicate(timeout=PATIENCE_SECONDS)

        self.assertEqual(follower.returncode, 130, said)
        self.assertIn("llmctl follow", said)
        self.assertEqual(cluster.json("get", "left-alone")["phase"], "running")

    def test_supervisor_in_the_foreground_stops_all_when_told_to(self):
        cluster = self.make_cluster()
        supervisor = subprocess.Popen(cluster.command("local", "up", "--workers=1", "--foreground"), cwd=cluster.root,
                                      env=cluster.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.addCleanup(supervisor.kill)
        wait_until("the cluster is up",
                   lambda: (cluster.root / ".llmctl" / "coordinator.address").exists() and cluster.ready_nodes())

        supervisor.send_signal(signal.SIGINT)

        self.assertEqual(supervisor.wait(timeout=PATIENCE_SECONDS), 0)
        wait_until("all daemons have ended", lambda: not cluster.processes("llm-"))

    def test_killed_supervisor_takes_its_daemons_along(self):
        cluster = self.make_cluster()
        cluster.llmctl("local", "up", "--workers=1")
        supervisor = cluster.json("local", "status")["pid"]

        cluster.kill(supervisor)

        wait_until("all daemons have ended", lambda: not cluster.processes("llm-"))
        cluster.llmctl("local", "up", "--workers=1")
        self.assertEqual(cluster.ready_nodes(), ["worker-0"])

    def test_daemon_that_cannot_start_is_shown_with_its_log(self):
        programs = pathlib.Path(tempfile.mkdtemp(prefix="llm-bin-", dir="/tmp"))
        self.addCleanup(shutil.rmtree, programs, ignore_errors=True)
        for name in ("llmctl", "llm-coordinator"):
            shutil.copy2(bin_folder() / name, programs / name)
        broken = programs / "llm-worker"
        broken.write_text("#!/bin/sh\necho 'no device can be used' >&2\nexit 3\n")
        broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
        cluster = self.make_cluster(programs)

        up = cluster.llmctl("local", "up", "--workers=1", code=7)

        self.assertIn("worker-0", up.stderr)
        self.assertIn("exit code 3", up.stderr)
        self.assertIn("no device can be used", up.stderr)
        self.assertEqual(cluster.processes(), {})


if __name__ == "__main__":
    unittest.main()
