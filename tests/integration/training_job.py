"""The job that the tests run: the quickstart's own model on text of this repository, for a few seconds."""

import atexit
import dataclasses
import functools
import json
import pathlib
import re
import shutil
import subprocess
import tempfile

from cluster import bin_folder

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXT_SUFFIXES = (".md", ".h", ".cc", ".proto", ".cmake", ".py")
GLOBAL_BATCH = 4
TEXT_FOLDERS = ("docs", "common", "coordinator", "worker", "client", "proto", "tests/unit")


@functools.cache
def dataset() -> pathlib.Path:
    """Token shards of this repository's own text, prepared once per test program."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="llm-data-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    paths = [ROOT / "README.md"] + [path for name in TEXT_FOLDERS for path in sorted((ROOT / name).rglob("*"))]
    texts = [path.read_text() for path in paths if path.suffix in TEXT_SUFFIXES and path.is_file()]
    corpus = folder / "corpus.jsonl"
    corpus.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    prepared = folder / "dataset"
    subprocess.run([bin_folder() / "llm-data", "prepare", "--input", corpus, "--output", prepared], check=True,
                   capture_output=True)
    return prepared


@functools.cache
def quickstart_model() -> str:
    text = (ROOT / "examples" / "quickstart.yaml").read_text()
    return re.search(r"^model:\n(?:(?: .*| *#.*)?\n)+?(?=^\S|\Z)", text, re.MULTILINE)[0]


@dataclasses.dataclass
class Job:
    """What a case may want different; everything else is the same in all, so that losses can be compared."""
    name: str
    directory: pathlib.Path
    steps: int = 60
    hosts: int = 1
    dataset: pathlib.Path | None = None
    checkpoint_every: int = 10
    global_batch: int = GLOBAL_BATCH
    micro_batch: int = 2
    extra: str = ""

    def write(self, folder: pathlib.Path) -> pathlib.Path:
        path = folder / f"{self.name}.yaml"
        path.write_text(self.yaml())
        return path

    def yaml(self) -> str:
        return f"""apiVersion: llmctl/v1
kind: TrainingJob
metadata:
  name: {self.name}
{quickstart_model()}data:
  dataset: {self.dataset or dataset()}
  sequenceLength: 64
training:
  steps: {self.steps}
  globalBatchSize: {self.global_batch}
  microBatchSize: {self.micro_batch}
  validation:
    everySteps: 0
checkpoint:
  directory: {self.directory}
  everySteps: {self.checkpoint_every}
  keepLast: 2
resources:
  workers:
    min: {self.hosts}
  devicesPerWorker: {2 // self.hosts}
{self.extra}"""

    def curve(self) -> dict[int, dict]:
        """Step -> its line, of the newest generation that took the step."""
        return {step: lines[-1] for generation in self.generations()
                for step, lines in read_curve(self.curve_path(generation)).items()}

    def curve_path(self, generation: int) -> pathlib.Path:
        return next(self.directory.rglob(f"curves/*-g{generation}.jsonl"))

    def steps_of(self, generation: int) -> list[int]:
        return sorted(read_curve(self.curve_path(generation)))

    def torn_checkpoints(self) -> list[pathlib.Path]:
        """Saves that never finished and that nobody removed or replaced."""
        return [path for path in self.directory.rglob("step-*")
                if path.is_dir() and not (path / "manifest.json").exists()]

    def losses(self) -> list[tuple[int, float]]:
        return [(step, entry["loss"]) for step, entry in sorted(self.curve().items())]

    def last_step(self) -> int:
        return max(self.curve(), default=0)

    def generations(self) -> list[int]:
        return sorted(_generation(path) for path in self.directory.rglob("curves/*.jsonl"))


def read_curve(path: pathlib.Path) -> dict[int, list[dict]]:
    """Step -> its lines in the curve of one generation."""
    steps = {}
    for line in path.read_text().splitlines(keepends=True):
        # The last line may be half written: the process may have been killed.
        if line.endswith("\n") and "loss" in (entry := json.loads(line)):
            steps.setdefault(entry["step"], []).append(entry)
    return steps


def _generation(path: pathlib.Path) -> int:
    return int(re.search(r"-g(\d+)", path.name)[1])
