"""Write requirements.lock from pyproject.toml and what is installed: `python -m aiplatform.cli.lock`.

Install or upgrade into the environment first, run the gate, then run this: the
lock holds exactly the versions the gate has seen.
"""

from __future__ import annotations

import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from aiplatform.cli.bootstrap import LOCK, TESTS_FROM_HERE

ROOT = Path(__file__).resolve().parents[2]


def closure(roots: list[str]) -> dict[str, str]:
    """Return every distribution that `roots` need on this machine: canonical name → pinned line."""
    pins: dict[str, str] = {}
    todo = [(Requirement(text), frozenset(Requirement(text).extras)) for text in roots]
    done: set[tuple[str, frozenset[str]]] = set()
    while todo:
        wanted, extras = todo.pop()
        name = canonicalize_name(wanted.name)
        if (name, extras) in done:
            continue
        done.add((name, extras))
        try:
            installed = distribution(wanted.name)
        except PackageNotFoundError:
            if wanted.name in {Requirement(text).name for text in roots}:
                raise
            continue
        pins[name] = f"{installed.metadata['Name']}=={installed.version.split('+')[0]}"
        for line in installed.requires or ():
            need = Requirement(line)
            contexts = [{"extra": extra} for extra in extras] or [{"extra": ""}]
            if need.marker is None or any(need.marker.evaluate(context) for context in contexts):
                todo.append((need, frozenset(need.extras)))
    return pins


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    product = closure(project["project"]["dependencies"])
    gate = closure(project["dependency-groups"]["gate"])
    lines = ["# Versions the gate has passed with. Written by `python -m aiplatform.cli.lock`.", *sorted_lines(product)]
    lines += [TESTS_FROM_HERE, *sorted_lines({name: line for name, line in gate.items() if name not in product})]
    (ROOT / LOCK).write_text("\n".join(lines) + "\n")


def sorted_lines(pins: dict[str, str]) -> list[str]:
    return [pins[name] for name in sorted(pins)]


if __name__ == "__main__":
    main()
