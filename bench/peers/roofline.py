#!/usr/bin/env python3
"""How fast this machine multiplies matrices on one thread: the bound that no training step passes.

For each line on stdin, measures square products for half a second and prints a JSON line with the best FLOP/s in
CPU time. Takes turns with the peers, so that all columns saw the same minutes of the machine.
"""

import argparse
import json
import sys
import time

import torch


def best_flops(dtype: torch.dtype, n: int, seconds: float) -> float:
    a, b, out = (torch.randn(n, n).to(dtype) for _ in range(3))
    torch.mm(a, b, out=out)
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        began = time.process_time()
        torch.mm(a, b, out=out)
        best = min(best, time.process_time() - began)
    return 2 * n ** 3 / best


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtype", required=True, choices=("fp32", "bf16"))
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[parser.parse_args().dtype]
    torch.set_num_threads(1)
    print(json.dumps({"ready": True}), flush=True)
    for _ in sys.stdin:
        flops = max(best_flops(dtype, n, 0.25) for n in (1024, 2048))
        print(json.dumps({"flops_per_cpu_second": flops}), flush=True)


if __name__ == "__main__":
    main()
