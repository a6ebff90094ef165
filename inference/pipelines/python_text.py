"""A pipeline as a Python script for people. It is read back where it is theirs to run: on their machine, never here."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Iterator, Mapping
from typing import Any

from inference.pipelines.builder import OPTIONS, Pipeline
from inference.pipelines.diffing import ordered, sources

_WIDTH = 100
_START = '''\
"""{name}: a pipeline. `aip pipeline push THIS_FILE` makes it the newest version."""

from aip_pipeline import Pipeline

p = Pipeline()
'''
_END = """
if __name__ == "__main__":
    print(p)
"""
_TAKEN = {"p", "Pipeline", *keyword.kwlist, *dir(builtins)}
_OWN = {"with_", "from_", "self", *OPTIONS}  # names of the builder's arguments
_ATTRIBUTES = {"port"}  # of a step, which are no outputs


def to_python(spec: Mapping[str, Any], name: str = "pipeline") -> str:
    """Write a script of a canonical specification that makes exactly this one again."""
    title = "".join(char for char in name if char.isprintable() and char not in '"\\')
    lines = [_START.format(name=title or "pipeline")]
    for parameter, parameter_entry in sorted((spec.get("parameters") or {}).items()):
        note = {"note": parameter_entry["note"]} if parameter_entry.get("note") else {}
        lines.append(_call("p.parameter", [repr(parameter), repr(parameter_entry.get("default"))], note))
    steps = spec.get("steps") or {}
    variables: dict[str, str] = {}
    names = _variables(steps)
    used = {source for step in steps.values() for source in sources(step)}
    if lines[1:] and steps:
        lines.append("")
    for step in ordered(steps):
        lines.append(_step(step, steps[step], variables, names[step] if step in used else ""))
        variables[step] = names[step]
    return "\n".join(lines) + "\n" + _END


def _variables(steps: Mapping[str, Any]) -> dict[str, str]:
    """A name in Python for each step: its own, with an underscore where that is taken."""
    names: dict[str, str] = {}
    taken = _TAKEN | set(steps)
    for at, step in enumerate(steps):
        name = step if _is_word(step) else f"step_{at}"
        while name in _TAKEN or (name != step and name in taken):
            name += "_"
        names[step] = name
        taken.add(name)
    return names


def _step(name: str, step: Mapping[str, Any], variables: Mapping[str, str], variable: str) -> str:
    kind = str(step.get("kind", ""))
    is_method = (
        hasattr(Pipeline, kind) and kind not in ("step", "spec", "parameter", "made") and not kind.startswith("_")
    )
    first = [repr(name)] if is_method else [repr(name), repr(kind)]
    call = f"{variable} = p.{kind if is_method else 'step'}" if variable else f"p.{kind if is_method else 'step'}"
    values, fed = dict(step.get("with") or {}), dict(step.get("from") or {})
    named, with_, from_ = dict[str, str](), dict[str, str](), dict[str, str]()
    for key, value in values.items():
        odd = not _is_word(key) or key in _OWN or key in fed
        (with_ if odd else named)[key] = repr(value)
    for port, source in fed.items():
        links = source if isinstance(source, list) else [source]
        odd = (
            keyword.iskeyword(port)
            or port in _OWN
            or port in values
            or any(_step_of(link) not in variables for link in links)
        )
        (from_ if odd else named)[port] = _links(source, variables)
    named |= {key: _dictionary(entries) for key, entries in (("with_", with_), ("from_", from_)) if entries}
    return _call(call, first, {}, named | dict(_options(step, variables)))


def _options(step: Mapping[str, Any], variables: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for key in OPTIONS:
        value = step.get(key)
        if not value:
            continue
        if key in ("when", "each"):
            yield key, _link(value, variables)
        elif key == "after":
            yield key, f"[{', '.join(variables.get(name) or repr(name) for name in value)}]"
        else:
            yield key, repr(value)


def _is_word(name: str) -> bool:
    """Whether a name can be used in a script unquoted; all others are quoted, so that no name becomes code."""
    return name.isascii() and name.isidentifier() and not keyword.iskeyword(name)


def _step_of(link: str) -> str:
    return link.partition(".")[0]


def _link(link: str, variables: Mapping[str, str]) -> str:
    """Return an output as Python: an attribute of its step where that is defined above, else its text."""
    step, _dot, port = link.partition(".")
    if step not in variables:
        return repr(link)
    if _is_word(port) and port not in _ATTRIBUTES and not port.startswith("_"):
        return f"{variables[step]}.{port}"
    return f"{variables[step]}.port({port!r})"


def _links(source: Any, variables: Mapping[str, str]) -> str:
    if isinstance(source, list):
        return f"[{', '.join(_link(link, variables) for link in source)}]"
    return _link(source, variables)


def _dictionary(pairs: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{key!r}: {value}" for key, value in pairs.items()) + "}"


def _call(called: str, first: list[str], values: Mapping[str, Any], named: Mapping[str, str] | None = None) -> str:
    """Return a call on one line, or with one argument a line where that is too long."""
    args = [*first, *(f"{key}={value!r}" for key, value in values.items())]
    args += [f"{key}={value}" for key, value in (named or {}).items()]
    short = f"{called}({', '.join(args)})"
    if len(short) <= _WIDTH:
        return short
    return f"{called}(\n" + "".join(f"    {arg},\n" for arg in args) + ")"
