# Starts a rank per GPU and prints what collectives and a training over all ranks do. Arguments: backend, ranks, MiB.
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

backend, world, size_mib = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
BATCH, WIDTH = 8192 if backend == "nccl" else 64, 1024  # enough to compute while gradients are exchanged


def wait() -> None:
    if backend == "nccl":
        torch.cuda.synchronize()


def timed(work: Callable[[], Any], times: int) -> float:
    for _ in range(2):
        work()
    wait()
    dist.barrier()
    began = time.perf_counter()
    for _ in range(times):
        work()
    wait()
    return (time.perf_counter() - began) / times


def steps_per_second(model: nn.Module, device: torch.device) -> float:
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    images = torch.randn(BATCH, WIDTH, device=device)

    def step() -> None:
        optimizer.zero_grad()
        model(images).square().mean().backward()
        optimizer.step()

    for _ in range(3):
        step()
    wait()
    steps, began = 0, time.perf_counter()
    while steps < 10:  # the same number on all ranks
        step()
        steps += 1
    wait()
    return steps / (time.perf_counter() - began)


def main(rank: int) -> None:
    device = torch.device("cuda", rank) if backend == "nccl" else torch.device("cpu")
    if backend == "nccl":
        torch.cuda.set_device(device)
    dist.init_process_group(backend, init_method=f"file://{os.environ['MEETING']}", rank=rank, world_size=world)
    measured: dict[str, Any] = {"ranks": world}
    value = torch.full((4,), float(rank + 1), device=device)
    dist.all_reduce(value)
    measured["all_reduce"] = bool((value == world * (world + 1) / 2).all())
    value = torch.full((4,), float(rank), device=device)
    dist.broadcast(value, src=world - 1)
    measured["broadcast"] = bool((value == world - 1).all())
    parts = [torch.empty(1, device=device) for _ in range(world)]
    dist.all_gather(parts, torch.full((1,), float(rank), device=device))
    measured["all_gather"] = [float(part) for part in parts] == [float(number) for number in range(world)]
    values = torch.ones(int(size_mib * 2**20 / 4), device=device)
    seconds = timed(lambda: dist.all_reduce(values), 10)
    measured["bus_gb_s"] = 2 * (world - 1) / world * values.numel() * 4 / seconds / 1e9
    layers = [nn.Linear(WIDTH, WIDTH) for _ in range(8)]
    model = nn.Sequential(*layers).to(device)
    alone = torch.tensor([steps_per_second(model, device)], device=device)
    dist.all_reduce(alone, op=dist.ReduceOp.MIN)
    wrapped = nn.parallel.DistributedDataParallel(model, device_ids=[rank] if backend == "nccl" else None)
    measured["efficiency"] = steps_per_second(wrapped, device) / float(alone)
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        print("result", json.dumps(measured), flush=True)


if "RANK" in os.environ:
    main(int(os.environ["RANK"]))
else:
    program = os.environ["PROGRAM"]
    meeting = os.environ["AIP_OUTPUT_DIR"] + "/meeting"
    common = {**os.environ, "MEETING": meeting}
    ranks = [
        subprocess.Popen([sys.executable, "-c", program, *sys.argv[1:]], env={**common, "RANK": str(rank)})
        for rank in range(world)
    ]
    sys.exit(max(abs(rank.wait()) for rank in ranks))
