#!/usr/bin/env python3
"""The checker of all these tests is itself checked: each way to lose or repeat a step is planted and found."""

import json
import pathlib
import tempfile
import unittest

from final_sequence import FinalSequence, final_sequence
from training_job import GLOBAL_BATCH, Job

STEPS = 6


def segment(generation: int, steps: range, order: str = "one", skips: tuple = ()) -> dict:
    return {"sampler_digest": order, "first_sample": steps.start * GLOBAL_BATCH - GLOBAL_BATCH,
            "last_sample": steps.stop * GLOBAL_BATCH - GLOBAL_BATCH - 1, "generation": generation, "skips": list(skips)}


class Records(unittest.TestCase):
    """Generation 1 took steps 1 to 4, of which 1 to 3 were saved; generation 2 took 4 to 6."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.job = Job("records", pathlib.Path(folder.name), steps=STEPS)
        self.ledger = [segment(1, range(1, 4)), segment(2, range(4, 7))]
        self.curves = {1: [1, 2, 3, 4], 2: [4, 5, 6]}

    def read(self) -> FinalSequence:
        checkpoint = self.job.directory / "j-1" / f"step-{STEPS:08d}-a2-g2"
        checkpoint.mkdir(parents=True)
        (checkpoint / "manifest.json").write_text(json.dumps({"ledger": self.ledger}))
        curves = self.job.directory / "j-1" / "curves"
        curves.mkdir()
        for generation, steps in self.curves.items():
            lines = (json.dumps({"step": step, "loss": 10 * generation + step, "step_seconds": 1}) for step in steps)
            (curves / f"a{generation}-g{generation}.jsonl").write_text("".join(line + "\n" for line in lines))
        return final_sequence(self.job)

    def test_each_step_counts_in_the_generation_that_the_ledger_names(self):
        final = self.read()

        self.assertEqual((final.lost, final.repeated), ([], []))
        self.assertEqual(final.losses, [(1, 11), (2, 12), (3, 13), (4, 24), (5, 25), (6, 26)])
        self.assertEqual(sum(final.seconds), STEPS)

    def test_gap_in_the_ledger_is_a_lost_step(self):
        self.ledger[1] = segment(2, range(5, 7))
        self.assertEqual(self.read().lost, [4])

    def test_overlap_in_the_ledger_is_a_repeated_step(self):
        self.ledger[1] = segment(2, range(3, 7))
        self.curves[2] = [3, 4, 5, 6]
        self.assertEqual(self.read().repeated, [3])

    def test_step_that_no_curve_has_is_lost(self):
        self.curves[2] = [4, 6]
        self.assertEqual(self.read().lost, [5])

    def test_step_that_a_generation_took_twice_is_repeated(self):
        self.curves[2] = [4, 5, 5, 6]
        self.assertEqual(self.read().repeated, [5])

    def test_step_that_was_too_many_shows(self):
        self.ledger[1] = segment(2, range(4, 8))
        self.curves[2].append(7)
        self.assertEqual(self.read().losses[-1], (7, 27))

    def test_samples_of_two_orders_or_of_parts_of_a_step_are_no_permutation(self):
        for broken in (segment(2, range(4, 7), order="two"), segment(2, range(4, 7), skips=(1,)),
                       {**segment(2, range(4, 7)), "last_sample": STEPS * GLOBAL_BATCH - 2}):
            with self.subTest(broken), self.assertRaises(AssertionError):
                self.setUp()
                self.ledger[1] = broken
                self.read()


if __name__ == "__main__":
    unittest.main()
