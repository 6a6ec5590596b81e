"""The steps of a job that is disturbed: which were taken, when, by which attempt; how long none was new."""

import contextlib
import json
import pathlib
import statistics
import time
from typing import Callable, Iterable

from cluster import wait_until

EVERY = 5  # steps from one checkpoint to the next
SETTLED_STEPS = 3 * EVERY


class Steps:
    """What a job says of its steps: lines with the step, the time at which it was done, and `run`, the attempt (a new
    one after each kill) that took it."""

    def __init__(self, glob: Callable[[], Iterable[pathlib.Path]], run_of: Callable[[pathlib.Path, dict], object]):
        self._glob, self._run_of = glob, run_of
        self._read: dict[pathlib.Path, int] = {}
        self._lines: list[dict] = []

    def lines(self) -> list[dict]:
        """By time. Reads what is new: this goes on while others are measured."""
        for path in self._glob():
            with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                whole = file.read().rpartition(b"\n")[0]
                self._read[path] = self._read.get(path, 0) + (len(whole) + 1 if whole else 0)
                entries = [json.loads(line) for line in whole.splitlines()]
                self._lines += [entry | {"run": self._run_of(path, entry)} for entry in entries if "time" in entry]
        self._lines.sort(key=lambda entry: entry["time"])
        return self._lines

    def newest(self) -> int:
        lines = self.lines()
        return lines[-1]["step"] if lines else 0

    def usual_seconds(self) -> float:
        """Of an undisturbed step: the median of the last ones."""
        times = [entry["time"] for entry in self.lines()[-SETTLED_STEPS:]]
        return statistics.median(b - a for a, b in zip(times, times[1:]))

    def await_settled(self, what: str, offset: int, seconds: float):
        """Until enough steps have been taken in a row, and `offset` since a checkpoint fell due."""
        first = self.newest()
        wait_until(what, lambda: (step := self.newest()) >= first + SETTLED_STEPS and step % EVERY == offset, seconds)

    def seconds_lost(self, kill, seconds: float) -> float | None:
        """From the kill to the first step beyond those that were taken before; None: not within `seconds`."""
        usual, killed = self.usual_seconds(), time.time()
        kill()
        try:
            found = wait_until("a new step", lambda: first_beyond(self.lines(), killed), seconds)
        except AssertionError:
            return None
        return max(found - killed - usual, 0.0)


def first_beyond(lines: list[dict], killed: float) -> float | None:
    """When the first step was done that goes beyond those of the runs before the kill, by a run that began after it.
    The dying run may still finish a step, and the next may begin with the step that would have come anyway."""
    before = {line["run"] for line in lines if line["time"] <= killed}
    most = max((line["step"] for line in lines if line["run"] in before), default=0)
    return next((line["time"] for line in lines if line["run"] not in before and line["step"] > most), None)
