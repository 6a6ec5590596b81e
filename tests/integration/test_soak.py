#!/usr/bin/env python3
"""Three minutes of random faults: 80 % kills, 10 % stops, 10 % cuts, at a lease of 2 s."""

import random
import sys
import unittest

from campaign import Campaign

SOAK_SECONDS = 180


class Soak(unittest.TestCase):
    def test_no_step_is_lost_or_repeated_in_three_minutes_of_faults(self):
        seed = random.SystemRandom().randrange(1 << 32)
        print(f"seed {seed}", file=sys.stderr)
        campaign = Campaign(seed, say=lambda line: print(line, file=sys.stderr))
        self.addCleanup(campaign.close)

        report = campaign.run(seconds=SOAK_SECONDS)

        print(report.figures(), file=sys.stderr)
        self.assertTrue(report.clean(), report.figures())
        self.assertGreater(report.rounds, 10)


if __name__ == "__main__":
    unittest.main()
