"""Pipelines written in Python: one file, only the standard library. `aip pipeline push FILE.py` runs it where you are.

    from aip_pipeline import Pipeline

    p = Pipeline()
    preset = p.parameter("preset", "classify_small")
    cells = p.dataset("cells", dataset="BCCD", version="latest")
    train = p.train("train", preset=preset, params={"epochs": 3}, data=cells.data, retries=1)
    print(p)                                     # the specification as JSON

The first argument is the step's name. What comes from another step (`cells.data`) feeds an input, several in a list;
`when`, `after`, `each`, `retries`, `rule`, `tolerate` and `note` say when and how the step runs; everything else is a
parameter of its kind. Where a name means two of them, write the dictionaries `with_` and `from_`.
"""

from __future__ import annotations

import contextlib
import json
import runpy
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

FORMAT = 1
OPTIONS = ("when", "after", "each", "retries", "rule", "tolerate", "note")


class Port:
    """An output of a step."""

    def __init__(self, step: str, name: str) -> None:
        self.step, self.name = step, name

    def __str__(self) -> str:
        return f"{self.step}.{self.name}"


class Step:
    """A step of a pipeline; its outputs are its attributes: `train.model`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def port(self, name: str) -> Port:
        """An output by name, for names that are no attributes."""
        return Port(self._name, name)

    def __getattr__(self, name: str) -> Port:
        if name.startswith("__"):
            raise AttributeError(name)
        return Port(self._name, name)

    def __str__(self) -> str:
        return self._name


class Parameter:
    """A value that each run may set."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return f"${{{self.name}}}"


Link = Port | str


def _kind(name: str, doc: str) -> Callable[..., Step]:
    def method(self: Pipeline, step: str, /, **more: Any) -> Step:
        return self.step(step, name, **more)

    method.__name__, method.__doc__ = name, doc
    return method


class Pipeline:
    """Steps, and values that each run may set."""

    made: list[Pipeline] = []  # of the script that runs

    dataset = _kind("dataset", "A version of a dataset.")
    filter = _kind("filter", "Some images of a dataset.")
    split = _kind("split", "Divide a dataset into parts.")
    merge = _kind("merge", "Several datasets as one.")
    items = _kind("items", "A list of values, for steps that run for each of them.")
    annotate = _kind("annotate", "Annotate images with a model.")
    people = _kind("people", "Wait until people have annotated.")
    approve = _kind("approve", "Wait for a person's yes or no.")
    train = _kind("train", "Train a model.")
    study = _kind("study", "Search for good parameters.")
    evaluate = _kind("evaluate", "Measure a model on a dataset.")
    compare = _kind("compare", "Figures of a model beside those of the champion.")
    gate = _kind("gate", "Go on where figures meet a rule.")
    condition = _kind("condition", "Go one way or the other by the run's parameters.")
    register = _kind("register", "Put a model into the registry.")
    convert = _kind("convert", "Make a model faster or smaller.")
    serve = _kind("serve", "Answer requests with a model.")
    edge = _kind("edge", "Bring a model to devices.")
    push = _kind("push", "Send a model to another server.")
    predict = _kind("predict", "Let a model answer for a whole dataset.")
    command = _kind("command", "Run a command of your own.")
    notify = _kind("notify", "Tell people.")
    webhook = _kind("webhook", "Tell a program.")
    pipeline = _kind("pipeline", "Run another pipeline as one step.")

    def __init__(self) -> None:
        self._steps: dict[str, dict[str, Any]] = {}
        self._parameters: dict[str, dict[str, Any]] = {}
        self.made.append(self)

    def parameter(self, name: str, default: Any = None, note: str = "") -> Parameter:
        """Declare a value that each run may set, and return a placeholder for it in steps."""
        self._parameters[name] = {"default": _plain(default)} | ({"note": note} if note else {})
        return Parameter(name)

    def step(
        self,
        name: str,
        kind: str,
        /,
        *,
        with_: Mapping[str, Any] | None = None,
        from_: Mapping[str, Link | Sequence[Link]] | None = None,
        **more: Any,
    ) -> Step:
        """Add a step of any kind."""
        if name in self._steps:
            raise ValueError(f"There are two steps named {name}.")
        options = {key: more.pop(key) for key in OPTIONS if key in more}
        connected = {key: value for key, value in more.items() if _is_link(value)}
        values = {key: value for key, value in more.items() if key not in connected} | dict(with_ or {})
        links = {port: _links(link) for port, link in {**connected, **(from_ or {})}.items()}
        after = options.get("after") or []
        entry = {
            "kind": kind,
            "with": {key: _plain(values[key]) for key in sorted(values)},
            "from": {port: links[port] for port in sorted(links)},
            **{key: str(options[key]) for key in ("when", "each", "note") if options.get(key)},
            "after": sorted({str(item) for item in ([after] if isinstance(after, Step | str) else after)}),
            "retries": options.get("retries", 0),
            "rule": "" if options.get("rule") == "all_ok" else options.get("rule", ""),
            "tolerate": float(options.get("tolerate", 0)),
        }
        self._steps[name] = {key: value for key, value in entry.items() if value}
        return Step(name)

    def spec(self) -> dict[str, Any]:
        """Return the specification in its canonical form."""
        spec: dict[str, Any] = {"format": FORMAT}
        if self._parameters:
            spec["parameters"] = {name: self._parameters[name] for name in sorted(self._parameters)}
        return {**spec, "steps": {name: self._steps[name] for name in sorted(self._steps)}}

    def __str__(self) -> str:
        return json.dumps(self.spec(), ensure_ascii=False, indent=2)


def _is_link(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(item, Port) for item in value)
    return isinstance(value, Port)


def _links(source: Link | Sequence[Link]) -> str | list[str]:
    if isinstance(source, Port | str):
        return str(source)
    links = [str(item) for item in source]
    return links[0] if len(links) == 1 else links


def _plain(value: Any) -> Any:
    """Convert a value to JSON; parameters, steps and ports become references."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Parameter | Step | Port):
        return str(value)
    raise TypeError(f"A pipeline holds no {type(value).__name__}: {value!r}.")


def main(script: str) -> int:
    """Run a script on this machine and print the specification of the pipeline that it makes."""
    sys.modules["aip_pipeline"] = sys.modules[__name__]
    sys.path[0] = str(Path(script).resolve().parent)  # modules next to the script, as when it is run directly
    with contextlib.redirect_stdout(sys.stderr):
        runpy.run_path(script, run_name="pipeline")
    if len(Pipeline.made) != 1:
        sys.stderr.write(f"{script} makes {len(Pipeline.made)} pipelines; it has to make one.\n")
        return 1
    sys.stdout.write(f"{Pipeline.made[0]}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
