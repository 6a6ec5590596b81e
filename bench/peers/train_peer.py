#!/usr/bin/env python3
"""One PyTorch training set-up on one thread, kept warm: measures on demand, so that peers can take turns.

Prints a JSON line when it has warmed up; then, for each line "N" on stdin, runs N steps and prints a JSON line with
the tokens trained and the CPU seconds taken. A step is forward, backward, clipping to norm 1 and fused AdamW.
"""

import argparse
import json
import sys
import time

import torch

import llama


def make_step(shape: llama.Shape, bf16: bool, compiled: bool):
    torch.manual_seed(0)
    model = llama.Llama(shape)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    compute_loss = torch.compile(llama.loss) if compiled else llama.loss
    data = torch.randint(0, shape.vocabulary, (shape.batch, shape.sequence + 1))
    tokens, targets = data[:, :-1].contiguous(), data[:, 1:].contiguous()

    def step():
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            loss = compute_loss(model, tokens, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True, choices=llama.SHAPES)
    parser.add_argument("--dtype", required=True, choices=("fp32", "bf16"))
    parser.add_argument("--compile", action="store_true")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    shape = llama.SHAPES[chosen.model]
    step = make_step(shape, chosen.dtype == "bf16", chosen.compile)
    began = time.perf_counter()
    step()
    print(json.dumps({"ready": True, "first_step_seconds": round(time.perf_counter() - began, 2)}), flush=True)
    for line in sys.stdin:
        steps = int(line)
        began = time.process_time()
        for _ in range(steps):
            step()
        seconds = time.process_time() - began
        print(json.dumps({"tokens": steps * shape.tokens_per_step, "cpu_seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
