"""What the peers run in: LibTorch's own Python environment and the few packages that its Python half adds.

All of it lies under .deps/bench, nothing is installed on the machine. A part that cannot be had (no network, no
Python headers) costs its column, not the bench.
"""

import os
import pathlib
import subprocess

import cuda_stand_ins

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEERS = ROOT / "bench" / "peers"


def deps_dir() -> pathlib.Path:
    return pathlib.Path(os.environ.get("LLM_DEPS_DIR", ROOT / ".deps"))


class Environment:
    def __init__(self):
        self.folder = ROOT / ".deps" / "bench"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.missing = []
        self.python = deps_dir() / "venv" / "bin" / "python"
        if not self.python.exists():
            raise SystemExit(f"bench/train: no LibTorch under {deps_dir()}: run deploy/setup.sh, or set LLM_DEPS_DIR")
        self.packages = self._install_packages()
        self.libraries = self._cuda_libraries()
        self.preload = [path for path in (self._tcmalloc(), self._mkl_dispatch()) if path]

    def variables(self, tuned: bool) -> dict[str, str]:
        """Of a peer's process. The stock one gets passive waiting too: spinning would only slow it down."""
        variables = dict(os.environ, OMP_WAIT_POLICY="passive", OMP_NUM_THREADS="1", PYTHONWARNINGS="ignore",
                         PYTHONPATH=str(self.packages), TORCHINDUCTOR_CACHE_DIR=str(self.folder / "inductor"),
                         TORCHINDUCTOR_COMPILE_THREADS="2", PYTHONDONTWRITEBYTECODE="1")
        if self.libraries:
            variables["LD_LIBRARY_PATH"] = str(self.libraries)
        if tuned:
            variables["LD_PRELOAD"] = " ".join(str(path) for path in self.preload)
        return variables

    def _install_packages(self) -> pathlib.Path:
        target, wanted = self.folder / "packages", PEERS / "requirements.txt"
        stamp = target / ".installed"
        if not stamp.exists() or stamp.read_text() != wanted.read_text():
            print("Installing what PyTorch's Python half needs into .deps/bench", flush=True)
            subprocess.run([self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
                            "--require-hashes", "--upgrade", "--target", target, "-r", wanted], check=True)
            stamp.write_text(wanted.read_text())
        return target

    def _cuda_libraries(self) -> pathlib.Path | None:
        imports = [self.python, "-c", "import torch"]
        self.libraries = None
        if self._run(imports, env=self.variables(False)):
            return None
        folder = self.folder / "cuda_stand_ins"
        torch_lib = next(self.python.parents[1].glob("lib/python3*/site-packages/torch/lib"))
        cuda_stand_ins.build(torch_lib, folder)
        self.libraries = folder
        subprocess.run(imports, env=self.variables(False), check=True)
        return folder

    def _tcmalloc(self) -> pathlib.Path | None:
        installed = pathlib.Path("/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4")
        unpacked = self.folder / "tcmalloc"
        for folder in (installed.parent, unpacked / "usr/lib/x86_64-linux-gnu"):
            if (folder / installed.name).exists():
                return folder / installed.name
        fetched = self._run(["apt-get", "download", "-qq", "libtcmalloc-minimal4"])
        packages = sorted(self.folder.glob("libtcmalloc-minimal4_*.deb"))
        if fetched and packages and self._run(["dpkg-deb", "-x", packages[-1], unpacked]):
            return unpacked / "usr/lib/x86_64-linux-gnu" / installed.name
        self.missing.append("tcmalloc (Debian package libtcmalloc-minimal4)")
        return None

    def _mkl_dispatch(self) -> pathlib.Path | None:
        library = self.folder / "mkl_dispatch.so"
        if self._run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, PEERS / "mkl_dispatch.c"]):
            return library
        self.missing.append("MKL's AVX-512 kernels (gcc failed on bench/peers/mkl_dispatch.c)")
        return None

    def _run(self, command: list, env: dict[str, str] | None = None) -> bool:
        done = subprocess.run([str(part) for part in command], cwd=self.folder, env=env, capture_output=True, text=True,
                              check=False)
        return done.returncode == 0
