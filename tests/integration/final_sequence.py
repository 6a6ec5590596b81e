"""Which steps made the parameters of a job that has ended, by two records that must agree.

The ledger in the last checkpoint says which generation consumed which samples; the curves, written at other moments by
other code, say which steps each generation took. The sampler is a bijection of the sample's index, so a ledger that
runs from 0 to the end without gap or overlap says that the samples consumed are the permutation, each once.
"""

import dataclasses
import json

from training_job import Job, read_curve


@dataclasses.dataclass
class FinalSequence:
    losses: list[tuple[int, float]]  # of the steps that count, in order
    seconds: list[float]             # that each of these took
    lost: list[int]                  # steps whose samples no generation consumed, or that are in no curve
    repeated: list[int]              # steps whose samples were consumed twice


def final_sequence(job: Job) -> FinalSequence:
    ledger = _last_manifest(job)["ledger"]
    if len({segment["sampler_digest"] for segment in ledger}) != 1:
        raise AssertionError(f"job {job.name}: its samples come from more than one order: {ledger}")
    taken = {step: 0 for step in range(1, job.steps + 1)}
    lines = {step: [] for step in taken}
    for segment in ledger:
        curve = read_curve(job.curve_path(segment["generation"]))
        for step in _steps_of(segment, job.global_batch):
            taken[step] = taken.get(step, 0) + 1
            lines.setdefault(step, []).extend(curve.get(step, []))
    return FinalSequence(
        losses=[(step, line["loss"]) for step, found in sorted(lines.items()) for line in found],
        seconds=[line["step_seconds"] for _, found in sorted(lines.items()) for line in found],
        lost=[step for step, count in taken.items() if count == 0 or not lines[step]],
        repeated=[step for step, count in taken.items() if count > 1 or len(lines[step]) > 1])


def _last_manifest(job: Job) -> dict:
    found = sorted(job.directory.rglob(f"step-{job.steps:08d}-*/manifest.json"))
    if not found:
        raise AssertionError(f"job {job.name} left no checkpoint of its last step {job.steps} in {job.directory}")
    return json.loads(found[-1].read_text())


def _steps_of(segment: dict, global_batch: int) -> range:
    first, end = segment["first_sample"], segment["last_sample"] + 1
    if first % global_batch != 0 or end % global_batch != 0 or segment["skips"]:
        raise AssertionError(f"a generation consumed a part of a step, or skipped one: {segment}")
    return range(first // global_batch + 1, end // global_batch + 1)
