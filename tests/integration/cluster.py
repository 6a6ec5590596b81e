"""A real cluster in a temporary folder: one coordinator and some workers, each a process that a test may kill.

Nothing is shared with another cluster on the machine: ports are chosen by the kernel, state lies under `root`. The
test is the supervisor: what it kills it starts again itself, with the same arguments. At the end every process whose
command line names the folder is ended by pid. Waiting is always for a condition with a deadline; when one passes, the
message holds what the cluster looks like.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from typing import Callable, TypeVar

T = TypeVar("T")
POLL_SECONDS = 0.03
# Starts and answers take milliseconds; this is for a machine that does ten other things.
PATIENCE_SECONDS = 60
LOG_TAIL_BYTES = 2500


def bin_folder() -> pathlib.Path:
    return pathlib.Path(os.environ["LLMCTL_TEST_BIN"])


def wait_until(what: str, condition: Callable[[], T], seconds: float = PATIENCE_SECONDS,
               describe: Callable[[], str] = lambda: "") -> T:
    """The first true value of `condition`; AssertionError after `seconds`."""
    pause, end = threading.Event(), time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds:.0f} s for: {what}\n{describe()}")
        pause.wait(POLL_SECONDS)


class Daemon:
    """One program with a log file; `start` again after `kill` runs the same command."""

    def __init__(self, name: str, command: list, folder: pathlib.Path, environment: dict[str, str]):
        self.name = name
        self.command = [str(part) for part in command]
        self.log = folder / f"{name}.log"
        self.folder = folder
        self.environment = environment
        self.process = None

    def start(self):
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                            cwd=self.folder, env=self.environment)

    @property
    def pid(self) -> int:
        return self.process.pid

    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def kill(self, how: signal.Signals = signal.SIGKILL):
        if self.running():
            self.process.send_signal(how)
            # One that is stopped hears of no other signal.
            self.process.send_signal(signal.SIGCONT)
            self.process.wait(timeout=PATIENCE_SECONDS)


class Cluster:
    """`devices` gives the CPU slots of each worker, `standby` how many trainers wait there if not the default. On a
    `network` (lab.py) the coordinator is host 0 and worker i is host i + 1; without one all are on loopback."""

    def __init__(self, devices: tuple[int, ...] = (2,), network=None, lease: str = "3s", heartbeat: str = "200ms",
                 standby: int | None = None):
        # Short: unix sockets lie below it, and their paths end at 108 bytes.
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="llm-", dir="/tmp"))
        self.address_file = self.root / "address"
        self.environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.environment.pop("LLMCTL_COORDINATOR", None)
        # Before each command that is run where the coordinator is.
        self._enter = network.enter(0) if network else ()
        listen = ["--listen=127.0.0.1:0"]
        if network:
            listen = [f"--listen={network.address(0)}:0", "--insecure-listen"]
        self.coordinator = Daemon("coordinator", [
            *self._enter, bin_folder() / "llm-coordinator", f"--data-dir={self.root / 'coordinator'}",
            f"--address-file={self.address_file}", *listen, "--metrics-listen=127.0.0.1:0",
            f"--heartbeat-interval={heartbeat}", f"--lease={lease}",
        ], self.root, self.environment)
        self.worker_options = [] if standby is None else [f"--standby={standby}"]
        self.workers = [self.worker(f"host-{index}", slots, network.enter(index + 1) if network else ())
                        for index, slots in enumerate(devices)]

    def worker(self, node: str, slots: int, wrapper: tuple = ()) -> Daemon:
        return Daemon(node, [
            *wrapper, bin_folder() / "llm-worker", f"--node={node}", f"--coordinator=@{self.address_file}",
            f"--state-dir={self.root / node}", f"--devices=cpu:{slots}", "--threads-per-device=1",
            "--metrics-listen=127.0.0.1:0", *self.worker_options,
        ], self.root, self.environment)

    def start(self):
        self.start_coordinator()
        for worker in self.workers:
            worker.start()
        self.wait_until("all workers are ready", lambda: len(self.ready_nodes()) == len(self.workers))

    def start_coordinator(self):
        self.address_file.unlink(missing_ok=True)
        self.coordinator.start()
        self.wait_until("the coordinator serves", self.address_file.exists)

    def ready_nodes(self) -> list[str]:
        answer = self.llmctl("nodes", "-o", "json", check=False)
        if answer.returncode != 0:
            return []
        nodes = json.loads(answer.stdout).get("nodes", [])
        return [node["id"] for node in nodes if node["state"] == "ready"]

    def llmctl(self, *arguments, check: bool = True, seconds: float = PATIENCE_SECONDS) -> subprocess.CompletedProcess:
        answer = subprocess.run(self.command(*arguments), capture_output=True, text=True, cwd=self.root,
                                env=self.environment, timeout=seconds, check=False)
        if check and answer.returncode != 0:
            raise AssertionError(f"llmctl {' '.join(map(str, arguments))} ended with code {answer.returncode}\n"
                                 f"{answer.stdout}{answer.stderr}\n{self.describe()}")
        return answer

    def command(self, *arguments) -> list[str]:
        return [*self._enter, str(bin_folder() / "llmctl"), f"--coordinator=@{self.address_file}", *map(str, arguments)]

    def json(self, *arguments) -> dict:
        return json.loads(self.llmctl(*arguments, "-o", "json").stdout)

    def wait_until(self, what: str, condition: Callable[[], T], seconds: float = PATIENCE_SECONDS) -> T:
        return wait_until(what, condition, seconds, self.describe)

    def processes(self, program: str = "") -> dict[int, list[str]]:
        """Pid -> arguments of all that runs for this cluster, by what the kernel says. Of one program: without what
        only waits for a job (`standbys`)."""
        return {pid: arguments for pid, arguments in self._running(program).items()
                if not program or not waits_for_a_job(arguments)}

    def standbys(self, program: str = "llm-trainer") -> list[int]:
        return [pid for pid, arguments in self._running(program).items() if waits_for_a_job(arguments)]

    def _running(self, program: str) -> dict[int, list[str]]:
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    arguments = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                except OSError:
                    continue
                ours = any(str(self.root) in argument for argument in arguments)
                if ours and program in os.path.basename(arguments[0]):
                    found[int(entry.name)] = arguments
        return found

    def trainers(self, node: str = "") -> list[int]:
        """Of one host, or of all."""
        return sorted(pid for pid, arguments in self.processes("llm-trainer").items()
                      if any(str(self.root / node) in argument for argument in arguments))

    def logs_of(self, job: str, rank: int = 0, *arguments) -> str:
        return self.llmctl("logs", job, f"--rank={rank}", *arguments).stdout

    def describe(self) -> str:
        parts = [f"--- processes: {self._process_lines()}"]
        for log in sorted(self.root.glob("*.log")):
            parts.append(f"--- {log.name}\n{self._tail(log)}")
        for log in sorted(self.root.glob("host-*/**/std*.log")):
            parts.append(f"--- {log.relative_to(self.root)}\n{self._tail(log)}")
        return "\n".join(parts)

    def _process_lines(self) -> str:
        return "".join(f"\n  {pid} {' '.join(arguments)[:160]}" for pid, arguments in self.processes().items())

    @staticmethod
    def _tail(log: pathlib.Path) -> str:
        data = log.read_bytes()[-LOG_TAIL_BYTES:]
        return data.decode(errors="replace")

    def kill_everything(self):
        """As a power cut would: daemons, shims and trainers, in no order."""
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for daemon in (*self.workers, self.coordinator):
            daemon.kill()
        wait_until("the cluster's processes are gone", lambda: not self.processes())

    def close(self):
        self.kill_everything()
        shutil.rmtree(self.root, ignore_errors=True)


def waits_for_a_job(arguments: list[str]) -> bool:
    return any("/standby/waiting-for-a-job-" in argument for argument in arguments)
