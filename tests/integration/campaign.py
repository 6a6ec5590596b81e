"""Random faults on a real cluster, one after the other, under jobs that must not notice more than a delay.

A seed decides what is done to whom, when and for how long; the processes and their races are real, so a seed repeats
the faults and not the interleaving. Each round waits until training has got beyond the furthest step before the fault.
Each job that ends is held against a run that nobody disturbed: its losses bit by bit, its samples each once.
"""

import collections
import contextlib
import dataclasses
import json
import os
import random
import signal
import statistics
import threading
import time
import unittest

from cluster import Cluster, Daemon
from cluster_test_case import CANCELLED, FAILED, SUCCEEDED, undisturbed_losses
from final_sequence import final_sequence
from lab import Network
from training_job import Job

# In per cent of the rounds.
MIX = {"kill": 80, "stop": 10, "cut": 10}
KILLED = ("trainer", "shim", "agent", "coordinator", "everything")
ENDS_THE_GANG = ("trainer", "shim", "everything")
STOPPED = ("trainer", "shim", "agent", "coordinator")
CUT = ("from the coordinator", "from all")
LEASE_SECONDS = 2
# Shorter and longer than the lease.
PAUSE_SECONDS = (0.2, 2.5 * LEASE_SECONDS)
HOSTS = 3
STEPS = 150
COORDINATOR_HOST = 0
# From a fault to the first new step: leases, back-offs and starts, on a machine that does ten other things.
RECOVERY_SECONDS_MAX = 120
# A kill may always come before the next checkpoint.
PATIENT = "faultTolerance:\n  maxAttemptsWithoutProgress: 1000\n"


@dataclasses.dataclass
class Report:
    seed: int
    rounds: int = 0
    faults: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    recovery: dict[str, list[float]] = dataclasses.field(default_factory=lambda: collections.defaultdict(list))
    jobs: int = 0
    attempts: int = 0
    steps: int = 0
    lost_steps: int = 0
    repeated_steps: int = 0
    differing_losses: int = 0
    productive_seconds: float = 0
    seconds: float = 0

    def clean(self) -> bool:
        return self.jobs > 0 and not (self.lost_steps or self.repeated_steps or self.differing_losses)

    def figures(self) -> dict:
        slowest = {kind: round(max(seconds), 2) for kind, seconds in sorted(self.recovery.items())}
        usual = {kind: round(statistics.median(seconds), 2) for kind, seconds in sorted(self.recovery.items())}
        return {"seed": self.seed, "rounds": self.rounds, "faults": dict(sorted(self.faults.items())),
                "lease_s": LEASE_SECONDS, "jobs": self.jobs, "attempts": self.attempts, "steps": self.steps,
                "lost_steps": self.lost_steps, "repeated_steps": self.repeated_steps,
                "differing_losses": self.differing_losses, "seconds": round(self.seconds, 1),
                "effective_training_time": round(self.productive_seconds / max(self.seconds, 1e-9), 3),
                "recovery_s": {"p50": usual, "max": slowest}}


class Campaign:
    """`say` is called with a line per round. Close it, whatever happens."""

    def __init__(self, seed: int, say=print):
        self._random = random.Random(seed)
        self._say = say
        self._report = Report(seed)
        self._job = None
        self._job_id = ""
        self._network = None
        self._mix = dict(MIX)
        self._undisturbed = undisturbed_losses(STEPS)
        try:
            self._network = Network(1 + HOSTS)
        except unittest.SkipTest as why:
            del self._mix["cut"]
            say(f"cuts: {why}")
        self._cluster = Cluster((1,) * HOSTS, network=self._network, lease=f"{LEASE_SECONDS}s")

    def run(self, rounds: int | None = None, seconds: float | None = None) -> Report:
        """Until there were so many rounds or seconds; the job that trains then is trained to its end."""
        self._cluster.start()
        began = time.monotonic()
        self._begin_job()
        while self._wanted(began, rounds, seconds):
            self._round()
            if self._job.last_step() >= STEPS:
                self._end_job()
                if self._wanted(began, rounds, seconds):
                    self._begin_job()
        if self._job is not None:
            self._end_job()
        self._report.seconds = time.monotonic() - began
        return self._report

    def describe(self) -> str:
        return self._cluster.describe()

    def close(self):
        self._cluster.close()
        if self._network:
            self._network.close()

    def _wanted(self, began: float, rounds: int | None, seconds: float | None) -> bool:
        return (rounds is None or self._report.rounds < rounds) and (
            seconds is None or time.monotonic() - began < seconds)

    # ---- jobs ----

    def _begin_job(self):
        name = f"job-{self._report.jobs + 1}"
        self._job = Job(name, self._cluster.root / "checkpoints" / name, steps=STEPS, hosts=2, extra=PATIENT)
        self._job_id = self._cluster.json("submit", self._job.write(self._cluster.root))["id"]
        self._wait_for_step(2)

    def _end_job(self):
        view = self._cluster.wait_until(f"{self._job.name} has succeeded", self._succeeded, RECOVERY_SECONDS_MAX)
        final = final_sequence(self._job)
        report = self._report
        report.jobs += 1
        report.attempts += view["attempt"]
        report.steps += STEPS
        report.lost_steps += len(final.lost)
        report.repeated_steps += len(final.repeated)
        report.differing_losses += len(set(final.losses) ^ set(self._undisturbed)) // 2
        # A step in which a process stood still was not training all that time.
        longest = 3 * statistics.median(final.seconds)
        report.productive_seconds += sum(min(seconds, longest) for seconds in final.seconds)
        self._say(f"{self._job.name} has ended after {view['attempt']} attempts: {len(final.lost)} steps lost, "
                  f"{len(final.repeated)} repeated")
        self._job = None

    def _succeeded(self) -> dict | None:
        answer = self._cluster.llmctl("get", self._job_id, "-o", "json", check=False)
        if answer.returncode != 0:
            return None
        view = json.loads(answer.stdout)
        if view["phase"] in (FAILED, CANCELLED):
            raise AssertionError(f"{self._job.name} is {view['phase']}: {view.get('reason')}\n{self.describe()}")
        return view if view["phase"] == SUCCEEDED else None

    def _newest(self) -> tuple[int, int]:
        """Generation and its step. An older generation that was cut off may be further, and does not count."""
        generations = self._job.generations()
        return (generations[-1], max(self._job.steps_of(generations[-1]), default=0)) if generations else (0, 0)

    def _wait_for_step(self, step: int, oldest_generation: int = 1):
        asked = time.monotonic()

        def reached():
            nonlocal asked
            # Now and then also whether it has ended, well or not.
            if time.monotonic() - asked > LEASE_SECONDS:
                asked = time.monotonic()
                if self._succeeded():
                    return True
            generation, newest = self._newest()
            return generation >= oldest_generation and newest >= min(step, STEPS)

        self._cluster.wait_until(f"{self._job.name} has done step {step}", reached, RECOVERY_SECONDS_MAX)

    # ---- faults ----

    def _round(self):
        self._pause(self._random.uniform(0, 1))
        kind = self._random.choices(list(self._mix), list(self._mix.values()))[0]
        target = self._random.choice({"kill": KILLED, "stop": STOPPED, "cut": CUT}[kind])
        seconds = self._random.uniform(*PAUSE_SECONDS)
        generation, furthest = self._newest()
        began = time.monotonic()
        what = {"kill": self._kill, "stop": self._stop, "cut": self._cut}[kind](target, seconds)
        # What a dying generation still did is not yet going on.
        ends_the_gang = kind == "kill" and target in ENDS_THE_GANG
        self._wait_for_step(furthest + 1, generation + 1 if ends_the_gang else generation)
        took = time.monotonic() - began
        self._report.rounds += 1
        self._report.faults[kind] += 1
        self._report.recovery[f"{kind} {target}"].append(took)
        self._say(f"round {self._report.rounds}: {what} at step {furthest}, a new step after {took:.2f} s")

    def _kill(self, target: str, seconds: float) -> str:
        if target in ("trainer", "shim"):
            self._signal(self._some(f"llm-{target}"), signal.SIGKILL)
            return f"killed a {target}"
        if target == "everything":
            self._cluster.kill_everything()
            self._cluster.start_coordinator()
            for worker in self._cluster.workers:
                worker.start()
            return "killed everything"
        # Whoever supervises a daemon may take a while to start it again.
        daemon, pause = self._daemon(target), seconds / 4
        daemon.kill()
        self._pause(pause)
        if daemon is self._cluster.coordinator:
            self._cluster.start_coordinator()
        else:
            daemon.start()
        return f"killed {daemon.name} for {pause:.1f} s"

    def _stop(self, target: str, seconds: float) -> str:
        pid = self._some(f"llm-{target}") if target in ("trainer", "shim") else self._daemon(target).pid
        self._signal(pid, signal.SIGSTOP)
        self._pause(seconds)
        self._signal(pid, signal.SIGCONT)
        return f"stopped a {target} for {seconds:.1f} s"

    def _cut(self, target: str, seconds: float) -> str:
        island = self._random.randint(1, HOSTS)
        rest = {COORDINATOR_HOST} if target == "from the coordinator" else set(range(HOSTS + 1)) - {island}
        self._network.cut([island], rest)
        self._pause(seconds)
        self._network.heal()
        return f"cut host-{island - 1} off {target} for {seconds:.1f} s"

    def _some(self, program: str) -> int:
        return self._random.choice(sorted(self._cluster.wait_until(
            f"there is an {program}", lambda: self._cluster.processes(program))))

    def _daemon(self, target: str) -> Daemon:
        return self._cluster.coordinator if target == "coordinator" else self._random.choice(self._cluster.workers)

    @staticmethod
    def _signal(pid: int, how: signal.Signals):
        # It may have ended by itself.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, how)

    @staticmethod
    def _pause(seconds: float):
        """How long a fault lasts is a part of it, so here time itself is waited for."""
        threading.Event().wait(seconds)
