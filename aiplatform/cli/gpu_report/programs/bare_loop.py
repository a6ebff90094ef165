"""A training loop and nothing else, which preset trainings are compared with.

Runs as `python -c` in a folder with a copy of the presets. Arguments: name of a preset, class of its task, seconds to
learn after the first step; images and parameters come from the environment as in a job. Prints the steps after the
first one and the wall and CPU seconds that they took.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from importlib import import_module
from typing import Any


def main() -> None:
    """Train until the time is over."""
    name, task_class, seconds = sys.argv[1:]
    module = import_module(f"presets.{name}")
    run, ranks, budget, cores = (import_module(f"presets.{part}") for part in ("run", "ranks", "budget", "cores"))
    import torch  # after the presets, which set how its threads wait

    run.begun()
    here = run.Run.from_environment()
    params, alone = module.CARD.read(here.params()), ranks.join()
    device = alone.device
    task = getattr(module, task_class)(here, params, alone)
    model = task.model = task.model.to(device).to(memory_format=torch.channels_last).train()
    learner = torch.compile(model) if params["compile"] else model
    average = import_module("presets.average").Average(model, params["ema"])
    optimizer = task.optimizer()
    rates = [group["lr"] for group in optimizer.param_groups]
    size = min(params["batch_size"] or task.recipe.batch[0], task.rows)
    steps = params["steps"]  # of the learning rate
    in_bfloat16 = params["amp"] and (device.type == "cuda" or (task.dense and cores.multiplies_bfloat16()))
    lanes = None if params["compile"] else import_module("presets.lanes").for_learning(model, alone, size)
    generator = torch.Generator().manual_seed(params["seed"])
    parameters = list(ranks.parameters_of(model))

    def loss(batch: Any, draws: Any, lane: Any) -> Any:
        with torch.autocast(device.type, torch.bfloat16) if in_bfloat16 else nullcontext():
            return task.loss(learner, batch, draws, lane)

    def rows() -> Iterator[list[int]]:
        while True:
            order = torch.randperm(task.rows, generator=generator)
            for start in range(0, task.rows - size + 1, size):
                yield order[start : start + size].tolist()

    def now() -> tuple[float, float]:
        if device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter(), time.process_time()

    batches, began = rows(), (0.0, 0.0)
    step = 0
    with ThreadPoolExecutor(1) as reader:
        following = reader.submit(task.load, next(batches))
        while step < 2 or time.perf_counter() - began[0] < float(seconds):
            batch, following = following.result(), reader.submit(task.load, next(batches))
            share = budget.learning_rate(step / steps, warmup=params["warmup"], anneal=params["anneal"])
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = rate * share
            draws = {name: values.to(device) for name, values in task.draw(generator, size).items()}
            if lanes:
                lanes.learn(model, loss, batch, draws)
            else:
                optimizer.zero_grad(set_to_none=True)
                sum(loss(batch, draws, alone).values()).backward()
            torch.nn.utils.clip_grad_norm_(parameters, 5.0)
            optimizer.step()
            average.follow(model, step)
            began = began if step else now()
            step += 1
        ended = now()
    measured = {"steps": step - 1, "seconds": ended[0] - began[0], "cpu_seconds": ended[1] - began[1], "batch": size}
    print("result", json.dumps(measured), flush=True)


main()
