import asyncio
import itertools
import threading
import time

import numpy as np
import pytest

from inference.kit.model_io.refusals import DeadlineExceeded, ModelFailed, NotReady, QueueFull
from inference.serving.server import batcher as batcher_module
from inference.serving.server.batcher import Batcher, Entry


class Clock:
    """Replaces the module `time`: real except for the duration of a model run."""

    monotonic = staticmethod(time.monotonic)

    def __init__(self, perf_counter) -> None:
        self.perf_counter = perf_counter


class Model:
    """Doubles its input; can be held back, remembers its batch sizes."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.threads: list[int] = []
        self.go = threading.Event()
        self.go.set()

    def __call__(self, feeds, wanted):
        self.go.wait(5)
        self.batches.append(len(feeds["x"]))
        self.threads.append(threading.get_ident())
        if (feeds["x"] < 0).any():
            raise RuntimeError("negative")
        return {"y": feeds["x"] * 2}


def entry(value: float = 1.0, count: int = 1, within_s: float = 5.0, width: int = 2) -> Entry:
    future = asyncio.get_running_loop().create_future()
    feeds = {"x": np.full((count, width), value, np.float32)}
    return Entry(feeds, (), count, time.monotonic() + within_s, future)


def run(scenario, **settings):
    model = Model()

    async def main():
        limits = {"max_batch": 4, "max_delay_s": 0.002, "queue_limit": 8, **settings}
        batcher = Batcher(model, **limits)
        batcher.start()
        try:
            return await asyncio.wait_for(scenario(batcher, model), 60)
        finally:
            model.go.set()
            await batcher.stop()

    return asyncio.run(main())


async def occupy(batcher: Batcher, model: Model, value: float = 0.0) -> asyncio.Task:
    """One request that keeps the model busy until `model.go` is set."""
    model.go.clear()
    task = asyncio.create_task(batcher.submit(entry(value)))
    while batcher.running_since is None:
        await asyncio.sleep(0)
    return task


async def line_up(batcher: Batcher, *entries: Entry) -> list[asyncio.Task]:
    """Requests that wait behind the one that runs."""
    tasks = [asyncio.create_task(batcher.submit(entry)) for entry in entries]
    await asyncio.sleep(0)
    assert len(batcher.waiting) == len(entries)
    return tasks


def test_batcher_runs_waiting_requests_together_and_returns_their_rows():
    async def scenario(batcher, model):
        first = await occupy(batcher, model)
        others = await line_up(batcher, *(entry(v) for v in range(1, 6)))
        model.go.set()
        answers = await asyncio.gather(first, *others)
        return model.batches, [float(a.outputs["y"][0, 0]) for a in answers]

    batches, values = run(scenario)

    assert batches == [1, 4, 1]
    assert values == [0, 2, 4, 6, 8, 10]


def test_batcher_runs_a_lone_request_at_once():
    async def scenario(batcher, model):
        return await batcher.submit(entry())

    answer = run(scenario, max_delay_s=5.0)

    assert answer.queue_s < 1


def test_batcher_waits_for_requests_on_their_way():
    async def scenario(batcher, model):
        batcher.on_their_way = 1
        first = asyncio.create_task(batcher.submit(entry()))
        for _ in range(5):  # the batcher has seen it and waits
            await asyncio.sleep(0)
        batcher.on_their_way = 0
        await asyncio.gather(first, batcher.submit(entry()))
        return model.batches

    assert run(scenario, max_delay_s=5.0) == [2]


def test_batcher_runs_different_shapes_apart():
    async def scenario(batcher, model):
        first = await occupy(batcher, model)
        others = await line_up(batcher, entry(), entry(), entry(width=3), entry())
        model.go.set()
        await asyncio.gather(first, *others)
        return model.batches

    assert run(scenario) == [1, 2, 1, 1]


def test_batcher_cuts_a_request_larger_than_a_batch():
    async def scenario(batcher, model):
        answer = await batcher.submit(entry(count=7))
        return model.batches, answer.outputs["y"].shape

    assert run(scenario) == ([4, 3], (7, 2))


def test_batcher_with_a_full_queue_refuses_and_says_when_to_return():
    async def scenario(batcher, model):
        first = await occupy(batcher, model)
        others = await line_up(batcher, *(entry() for _ in range(8)))
        with pytest.raises(QueueFull) as refused:
            await batcher.submit(entry())
        model.go.set()
        await asyncio.gather(first, *others)
        return refused.value.retry_after

    assert run(scenario) >= 1


def test_batcher_drops_what_waited_too_long_without_running():
    async def scenario(batcher, model):
        first = await occupy(batcher, model)
        with pytest.raises(DeadlineExceeded):
            await batcher.submit(entry(within_s=0.01))
        left = len(batcher.waiting), batcher.samples
        model.go.set()
        await first
        return left, model.batches

    assert run(scenario) == ((0, 0), [1])


def test_batcher_removes_a_cancelled_caller_from_the_queue():
    async def scenario(batcher, model):
        first = await occupy(batcher, model)
        (second,) = await line_up(batcher, entry())
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        model.go.set()
        await first
        return len(batcher.waiting), model.batches

    assert run(scenario) == (0, [1])


def test_batcher_lets_one_bad_request_fail_no_neighbours():
    async def scenario(batcher, model):
        await occupy(batcher, model)
        asks = await line_up(batcher, *(entry(v) for v in (1, 2, -1, 3)))
        model.go.set()
        return await asyncio.gather(*asks, return_exceptions=True)

    first, second, bad, third = run(scenario)

    assert [float(a.outputs["y"][0, 0]) for a in (first, second, third)] == [2, 4, 6]
    assert isinstance(bad, ModelFailed)


def test_batcher_stop_answers_everyone():
    model = Model()

    async def main():
        batcher = Batcher(model, max_batch=1, max_delay_s=0, queue_limit=8)
        batcher.start()
        first = await occupy(batcher, model)
        others = await line_up(batcher, entry(), entry())
        await batcher.stop()
        model.go.set()
        return await asyncio.gather(first, *others, return_exceptions=True)

    assert [type(answer) for answer in asyncio.run(main())] == [NotReady] * 3


@pytest.mark.parametrize(("even", "seconds", "in_loop"), [(True, 0.0, True), (False, 0.0, False), (True, 60.0, False)])
def test_batcher_computes_in_the_event_loop_only_what_has_shown_to_be_quick(monkeypatch, even, seconds, in_loop):
    """The model's clock advances by `seconds` in each run."""
    ticks = itertools.count()
    monkeypatch.setattr(batcher_module, "time", Clock(lambda: next(ticks) * seconds))

    async def scenario(batcher, model):
        answers = [await batcher.submit(entry(value)) for value in range(5)]
        return [float(answer.outputs["y"][0, 0]) for answer in answers], model.threads

    values, threads = run(scenario, even=even)

    assert values == [0, 2, 4, 6, 8]
    assert threads[0] != threading.get_ident()  # nobody knows yet
    assert [thread == threading.get_ident() for thread in threads[1:]] == [in_loop] * 4


def test_batcher_goes_back_to_its_thread_after_one_slow_run_in_the_event_loop(monkeypatch):
    taken = iter([0.0, 0.0, 0.0, 60.0, 0.0, 0.0, 0.0, 0.0])
    moments = itertools.accumulate(itertools.chain.from_iterable((0.0, seconds) for seconds in taken))
    monkeypatch.setattr(batcher_module, "time", Clock(lambda: next(moments)))

    async def scenario(batcher, model):
        for _ in range(6):
            await batcher.submit(entry())
        return model.threads

    threads = run(scenario, even=True)

    assert [thread == threading.get_ident() for thread in threads] == [False, True, True, True, False, False]


def test_batcher_blames_a_request_the_model_refuses_in_the_event_loop(monkeypatch):
    monkeypatch.setattr(batcher_module, "time", Clock(lambda: 0.0))

    async def scenario(batcher, model):
        await batcher.submit(entry())
        tasks = [asyncio.create_task(batcher.submit(entry(value))) for value in (1.0, -1.0, 2.0)]
        return await asyncio.gather(*tasks, return_exceptions=True)

    good, bad, other = run(scenario, even=True)

    assert (float(good.outputs["y"][0, 0]), float(other.outputs["y"][0, 0])) == (2, 4)
    assert isinstance(bad, ModelFailed)
