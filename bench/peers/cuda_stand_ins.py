"""Lets Python import the CUDA build of PyTorch on a machine without CUDA's libraries.

LibTorch's C++ half needs only cudart and cupti, and that is all that deploy/setup.sh installs; `import torch` loads the
CUDA half too and wants gigabytes more. None of that code runs on CPU tensors, so libraries of the right names whose
functions trap are enough. Only for the bench; where the real libraries are, torch finds them first.
"""

import pathlib
import re
import subprocess

LIBRARIES = ("libcublas.so.13", "libcublasLt.so.13", "libcudnn.so.9", "libcufft.so.12", "libcufile.so.0",
             "libcurand.so.10", "libcusparse.so.12", "libcusparseLt.so.0", "libnccl.so.2", "libnvshmem_host.so.3",
             "libcusolver.so.12")
FUNCTION = re.compile(r"\bU ((?:nvshmem|cuFile|cusparseLt|cublas|cudnn|cufft|curand|cusparse|nccl|cusolver)\w*)")
CUDA_PARTS = ("libtorch_cuda.so", "libtorch_nvshmem.so", "libtorch_python.so", "libc10_cuda.so")


def build(torch_lib: pathlib.Path, folder: pathlib.Path):
    """Writes the stand-ins into `folder`, to be put on LD_LIBRARY_PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = [torch_lib / name for name in CUDA_PARTS]
    undefined = set(FUNCTION.findall(_output("nm", "-D", "--undefined-only", *parts)))
    source = folder / "stand_ins.c"
    source.write_text("".join(f"void {name}(void) {{ __builtin_trap(); }}\n" for name in sorted(undefined)))
    versions = _output("readelf", "-VW", *parts)
    for library in LIBRARIES:
        command = ["gcc", "-w", "-shared", "-fPIC", source, f"-Wl,-soname,{library}", "-o", folder / library]
        # A symbol asked for with a version must be defined with one.
        if match := re.search(rf"File: {re.escape(library)} .*\n.*Name: (\w+)", versions):
            script = folder / f"{library}.map"
            script.write_text(f"{match[1]} {{ global: *; }};\n")
            command.insert(1, f"-Wl,--version-script={script}")
        subprocess.run(command, check=True)


def _output(*command) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
