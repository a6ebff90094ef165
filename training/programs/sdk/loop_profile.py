"""Where the time of the steps of any loop goes: for scripts of one's own, in the form of a preset's profile.

    from aip import profile

    for batch in profile(loader, steps=10, skip=5):     # a step is one turn of the loop
        ...

    with profile(steps=10) as profiling:                # or a loop of any form
        while learning:
            with profiling.part("forward"):             # parts may be named; what has no name counts as the rest
                ...
            profiling.step()

After `skip` steps it takes `steps` as they are, for how long one takes, then as many under torch.profiler, and writes
`profile/profile.json`; from there on the loop goes on as if nothing were around it. A short loop is gone on with in
the next one, as of the next epoch. Without torch it tells what it can: waiting for data, and named parts. Nothing here
ends a program: what fails is one line of the log. Only the first rank profiles.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

from training.presets.profile_facts import MAX_NAME_LENGTH, MAX_STEPS, USUAL_STEPS, WAIT

from .step_recorder import Recorder

USUAL_SKIP, MAX_SKIPPED_STEPS = 5, 100_000
_END: Any = object()  # of a loader
Item = TypeVar("Item")

_recorder: Recorder | None = None


class Profiling(Generic[Item]):
    """A loop whose steps are profiled: iterate over it, or enter it and say when each step is over."""

    def __init__(self, batches: Iterable[Item], recorder: Recorder) -> None:
        self._batches, self._recorder, self._owns = batches, recorder, False

    def __iter__(self) -> Iterator[Item]:
        if self._recorder.over or self._recorder.busy:
            return iter(self._batches)
        return self._steps()

    def __len__(self) -> int:
        return len(self._batches)  # type: ignore[arg-type]  # what has no length says so itself

    def __getattr__(self, name: str) -> Any:
        """Return attributes of the loader, such as its sampler."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._batches, name)

    def _steps(self) -> Iterator[Item]:
        recorder = self._recorder
        recorder.busy = True
        try:
            recorder.loader = _about(self._batches)
            batches = iter(self._batches)
            while not recorder.over:
                recorder.begin_step()
                with self.part(WAIT):
                    batch = next(batches, _END)
                if batch is _END:
                    return
                yield batch
                recorder.end()
        finally:
            recorder.leave()
        yield from batches

    def __enter__(self) -> Profiling[Item]:
        self._owns = not (self._recorder.over or self._recorder.busy)
        if self._owns:
            self._recorder.busy = True
            self._recorder.begin_step()
        return self

    def __exit__(self, *_: object) -> None:
        if self._owns:
            self._recorder.leave()

    def step(self) -> None:
        """A step is over, and the next one begins."""
        if self._owns and not self._recorder.over:
            self._recorder.end()
            if not self._recorder.over:
                self._recorder.begin_step()

    def part(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Name what a step does within: "forward", "backward", "optimizer", "wait", or a name of one's own."""
        return self._recorder.part(str(name)[:MAX_NAME_LENGTH]) if self._recorder.marking else contextlib.nullcontext()


def profile(batches: Iterable[Item] = (), *, steps: int = USUAL_STEPS, skip: int = USUAL_SKIP) -> Profiling[Item]:
    """Profile some steps of a loop: `for batch in profile(loader):`, or `with profile() as profiling:`.

    All batches come in their order, whatever happens here. A process is profiled once; later calls go on where it has
    not seen enough steps yet, and do nothing once it has.

    Args:
        steps: 1 to 100, taken as they are and then as many under torch.profiler.
        skip: steps before them, which take longer than others: caches, compilation.
    """
    global _recorder  # noqa: PLW0603  one process is one run
    if _recorder is None:
        _recorder = Recorder(_within(steps, 1, MAX_STEPS, USUAL_STEPS), _within(skip, 0, MAX_SKIPPED_STEPS, USUAL_SKIP))
    return Profiling(batches, _recorder)


def _within(value: Any, low: int, high: int, usual: int) -> int:
    try:
        return min(max(int(value), low), high)
    except (TypeError, ValueError, OverflowError):
        return usual


def _about(batches: Any) -> dict[str, Any]:
    """What is known of a loader: of torch's, how it reads."""
    with contextlib.suppress(Exception):  # a loader may be anything
        loader = getattr(batches, "iterable", batches)  # what tqdm shows the progress of
        data = sys.modules.get("torch.utils.data")
        if data is not None and isinstance(loader, data.DataLoader):
            size = loader.batch_size
            return {
                "kind": "DataLoader",
                "workers": int(loader.num_workers),
                "pin_memory": bool(loader.pin_memory),
                "batch_size": size if isinstance(size, int) else None,
            }
    return {"kind": type(batches).__name__[:MAX_NAME_LENGTH]}
