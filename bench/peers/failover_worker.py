"""One rank of the peer in bench/failover: the tiny Llama under DistributedDataParallel, started by torchrun.

Saves model and optimizer every few steps and goes on from what it finds, as PyTorch's elastic tutorial has it. Rank 0
appends a JSON line per step to events.jsonl in the folder.
"""

import argparse
import json
import os
import time

import torch
import torch.distributed as dist

import llama

parser = argparse.ArgumentParser()
parser.add_argument("--folder", required=True)
parser.add_argument("--every", type=int, required=True)
parser.add_argument("--vocabulary", type=int, required=True)
parser.add_argument("--sequence", type=int, required=True)
parser.add_argument("--batch", type=int, required=True)
arguments = parser.parse_args()
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()

shape = llama.Shape(layers=4, hidden=256, heads=4, vocabulary=arguments.vocabulary, sequence=arguments.sequence,
                    batch=arguments.batch)
torch.manual_seed(0)
model = llama.Llama(shape)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
checkpoint = os.path.join(arguments.folder, "checkpoint.pt")
first = 0
if os.path.exists(checkpoint):
    saved = torch.load(checkpoint, mmap=True)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    first = saved["step"]
parallel = torch.nn.parallel.DistributedDataParallel(model)
with open(os.path.join(arguments.folder, "events.jsonl"), "a", buffering=1) as events:
    step = first
    while True:
        tokens = torch.randint(0, shape.vocabulary, (shape.batch // world, shape.sequence + 1))
        llama.loss(parallel, tokens[:, :-1], tokens[:, 1:]).backward()
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        if rank:
            continue
        events.write(json.dumps({"step": step, "time": time.time(), "pid": os.getpid()}) + "\n")
        if step % arguments.every == 0:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step},
                       checkpoint + ".tmp")
            os.replace(checkpoint + ".tmp", checkpoint)
