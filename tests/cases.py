"""Tables of cases that run as one test.

A parametrized test runs all autouse fixtures for each case, which costs more than most cases themselves.
`case_table` runs all cases within one test and reports every case that failed.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.db import transaction

MAX_MESSAGE_LENGTH = 2000
MAX_NAME_LENGTH = 100


def case_table(
    names: str | tuple[str, ...],
    values: Iterable[Any],
    *,
    ids: Iterable[str] | Callable[[Any], str] = (),
    rollback: bool = False,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test function once per case, as one test that fails with the names of all failed cases.

    Takes the arguments of `pytest.mark.parametrize` and replaces it for functions whose cases share their fixtures
    without effect on each other. Each case gets its own `monkeypatch` and its own folder `tmp_path`; all other fixtures
    are shared. Several tables may be stacked.

    Args:
        ids: names of the cases, or a function from a value to its name; by default the values themselves.
        rollback: undo what a case wrote to the database and the cache before the next one.
    """
    arguments = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    rows = [tuple(value) if len(arguments) > 1 else (value,) for value in values]
    label_of = ids if callable(ids) else _label
    labels = (not callable(ids) and list(ids)) or [", ".join(label_of(value) for value in row) for row in rows]
    if not rows or len(labels) != len(rows):
        raise ValueError(f"{len(rows)} cases with {len(labels)} names")
    own = [(label, dict(zip(arguments, row, strict=True))) for label, row in zip(labels, rows, strict=True)]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        function, inner, rollback_inner = getattr(test, "case_table", (test, [("", {})], False))
        if inspect.iscoroutinefunction(function):
            raise TypeError(f"{function.__name__} is a coroutine function; parametrize it instead.")
        cases = [(f"{a}, {b}" if b else a, values | more) for a, values in own for b, more in inner]
        has_rollback = rollback or rollback_inner
        taken = cases[0][1]
        parameters = inspect.signature(function).parameters

        @functools.wraps(function)
        def run(**fixtures: Any) -> None:
            results = list(_results(function, cases, fixtures, rollback=has_rollback))
            failures = [(name, error) for name, error in results if not isinstance(error, pytest.skip.Exception)]
            if len(results) == len(cases) and not failures:
                raise results[0][1]  # all cases are skipped
            if failures:
                text = "\n\n".join(f"{name}: {_message(error)}" for name, error in failures)
                error = AssertionError(f"{len(failures)} of {len(cases)} cases failed:\n\n{text}")
                raise error from failures[0][1]

        run.__signature__ = inspect.Signature([one for name, one in parameters.items() if name not in taken])
        run.case_table = function, cases, has_rollback
        return run

    return decorate


@contextmanager
def rolled_back() -> Iterator[None]:
    """Undo what the block writes to the database and the cache."""
    try:
        with transaction.atomic():
            yield
            transaction.set_rollback(True)
    finally:
        cache.clear()


def _results(
    test: Callable[..., None], cases: list[tuple[str, dict[str, Any]]], fixtures: dict[str, Any], *, rollback: bool
) -> Iterator[tuple[str, BaseException]]:
    """Yield the cases that failed or were skipped, each with its exception."""
    for number, (name, values) in enumerate(cases):
        with ExitStack() as stack:
            own = fixtures | values
            if "monkeypatch" in fixtures:
                own["monkeypatch"] = stack.enter_context(pytest.MonkeyPatch.context())
            if "tmp_path" in fixtures:
                own["tmp_path"] = _folder(fixtures["tmp_path"], number)
            if rollback:
                stack.enter_context(rolled_back())
            try:
                test(**own)
            except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
                yield name, error


def _folder(parent: Path, number: int) -> Path:
    folder = parent / f"case-{number}"
    folder.mkdir()
    return folder


def _label(value: Any) -> str:
    text = value if isinstance(value, str) and value else getattr(value, "__name__", None) or repr(value)
    return text if len(text) <= MAX_NAME_LENGTH else f"{text[:MAX_NAME_LENGTH]}…"


def _message(error: BaseException) -> str:
    text = f"{type(error).__name__}: {error}"
    return text if len(text) <= MAX_MESSAGE_LENGTH else f"{text[:MAX_MESSAGE_LENGTH]}…"
