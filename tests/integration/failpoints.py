"""Faults at named places in the code (common/base/failpoint.h), for the trainers of one job or for a daemon."""

import pathlib


class Failpoints:
    def __init__(self, folder: pathlib.Path, rules: str):
        self._counts = folder / "failpoints"
        self._rules = rules

    def job_section(self) -> str:
        """For the job's specification: all its ranks, in all attempts, count their hits together."""
        return f'env:\n  LLM_FAILPOINTS: "{self._rules}"\n  LLM_FAILPOINT_COUNTS: {self._counts}\n'

    def variables(self) -> dict[str, str]:
        """For the environment of a daemon."""
        return {"LLM_FAILPOINTS": self._rules, "LLM_FAILPOINT_COUNTS": str(self._counts)}

    def hits(self, name: str) -> int:
        try:
            return (self._counts / name).stat().st_size
        except FileNotFoundError:
            return 0
