#!/usr/bin/env python3
"""Does bench/failover count what it says? Its reading of a disturbed job, on curves that are known."""

import json
import pathlib
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from job_steps import Steps, first_beyond  # noqa: E402

KILLED = 10.5


def curve(run: str, steps: range, begin: float) -> list[dict]:
    """One step a second."""
    return [{"run": run, "step": step, "time": begin + i} for i, step in enumerate(steps)]


class FirstBeyond(unittest.TestCase):
    def test_steps_that_are_taken_again_do_not_count(self):
        lines = curve("g1", range(1, 11), 1) + curve("g2", range(6, 13), 12)

        self.assertEqual(first_beyond(lines, KILLED), 17)

    def test_a_run_that_has_nothing_to_repeat_counts_at_once(self):
        lines = curve("g1", range(1, 11), 1) + curve("g2", range(11, 13), 12)

        self.assertEqual(first_beyond(lines, KILLED), 12)

    def test_a_step_that_the_dying_run_still_finishes_is_none_of_the_next(self):
        lines = curve("g1", range(1, 12), 1) + curve("g2", range(11, 14), 12)

        self.assertEqual(first_beyond(lines, KILLED), 13)

    def test_a_job_that_is_not_taken_up_again_has_none(self):
        self.assertIsNone(first_beyond(curve("g1", range(1, 12), 1), KILLED))
        self.assertIsNone(first_beyond(curve("g1", range(1, 11), 1) + curve("g2", range(6, 10), 12), KILLED))


class ReadingSteps(unittest.TestCase):
    def test_each_line_is_read_once_and_only_when_whole(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a1-g1.jsonl"
            steps = Steps(lambda: [path], lambda path, _: path.stem)
            self.assertEqual(steps.newest(), 0)
            with path.open("w") as file:
                for step in (1, 2):
                    print(json.dumps({"step": step, "time": float(step)}), file=file)
                file.write('{"step": 3, "ti')
                file.flush()
                self.assertEqual([line["step"] for line in steps.lines()], [1, 2])
                file.write('me": 3.0}\n')
                file.flush()

                self.assertEqual([(line["step"], line["run"]) for line in steps.lines()],
                                 [(1, "a1-g1"), (2, "a1-g1"), (3, "a1-g1")])


if __name__ == "__main__":
    unittest.main()
