"""Compare two texts line by line with a bounded number of steps.

`difflib` takes time that grows with the square of the number of lines. This is Myers' greedy algorithm with a budget:
a comparison that exceeds it reports the lines between the common beginning and end as replaced.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

STEPS = 100_000  # about 40 ms of CPU time
CONTEXT_LINES = 3
Row = tuple[str, str]  # sign ("+", "-", " ", or "@" for a header) and text
_Change = tuple[int, int, int, int]  # old begin, old end, new begin, new end


@dataclass(slots=True)
class Budget:
    """Steps left for one or several comparisons.

    Attributes:
        is_exceeded: a comparison stopped early; its rows are correct, but not the shortest.
    """

    steps: int = STEPS
    is_exceeded: bool = False


def unified_rows(before: str, after: str, budget: Budget | None = None) -> list[Row]:
    """Return the rows of a unified difference without file names; none for equal texts."""
    old, new = before.splitlines(), after.splitlines()
    rows: list[Row] = []
    for hunk in _hunks(_changes(old, new, budget or Budget())):
        begin, new_begin = max(0, hunk[0][0] - CONTEXT_LINES), max(0, hunk[0][2] - CONTEXT_LINES)
        end, new_end = min(len(old), hunk[-1][1] + CONTEXT_LINES), min(len(new), hunk[-1][3] + CONTEXT_LINES)
        rows.append(("@", f"@@ -{_range(begin, end)} +{_range(new_begin, new_end)} @@"))
        at = begin
        for old_begin, old_end, added_begin, added_end in hunk:
            rows += [(" ", line) for line in old[at:old_begin]]
            rows += [("-", line) for line in old[old_begin:old_end]]
            rows += [("+", line) for line in new[added_begin:added_end]]
            at = old_end
        rows += [(" ", line) for line in old[at:end]]
    return rows


def _range(begin: int, end: int) -> str:
    count = end - begin
    if count == 1:
        return str(begin + 1)
    return f"{begin + 1 if count else begin},{count}"


def _hunks(changes: Sequence[_Change]) -> Iterator[list[_Change]]:
    """Group changes whose context lines touch."""
    hunk: list[_Change] = []
    for change in changes:
        if hunk and change[0] - hunk[-1][1] > 2 * CONTEXT_LINES:
            yield hunk
            hunk = []
        hunk.append(change)
    if hunk:
        yield hunk


def _changes(old: Sequence[str], new: Sequence[str], budget: Budget) -> list[_Change]:
    """Return the replaced ranges in order."""
    numbers: dict[str, int] = {}  # long lines are compared once, as keys
    a = [numbers.setdefault(line, len(numbers)) for line in old]
    b = [numbers.setdefault(line, len(numbers)) for line in new]
    begin, shorter = 0, min(len(a), len(b))
    while begin < shorter and a[begin] == b[begin]:
        begin += 1
    a_end, b_end = len(a), len(b)
    while a_end > begin and b_end > begin and a[a_end - 1] == b[b_end - 1]:
        a_end -= 1
        b_end -= 1
    if begin == a_end and begin == b_end:
        return []
    matches = _matches(a[begin:a_end], b[begin:b_end], budget) if begin < a_end and begin < b_end else []
    changes: list[_Change] = []
    at, new_at = begin, begin
    for x, y, length in [*((begin + x, begin + y, length) for x, y, length in matches), (a_end, b_end, 0)]:
        if at < x or new_at < y:
            changes.append((at, x, new_at, y))
        at, new_at = x + length, y + length
    return changes


def _matches(a: Sequence[int], b: Sequence[int], budget: Budget) -> list[tuple[int, int, int]]:
    """Return (begin in a, begin in b, length) of common runs, none where the budget is exceeded."""
    furthest = {1: 0}  # on diagonal x - y: the largest x that is reached
    trace: list[dict[int, int]] = []
    for distance in range(len(a) + len(b) + 1):
        reached: dict[int, int] = {}
        for diagonal in range(-distance, distance + 1, 2):
            down = furthest.get(diagonal + 1, -1)
            right = furthest.get(diagonal - 1, -2) + 1
            x = max(down, right)
            y = x - diagonal
            if x < 0 or x > len(a) or y < 0 or y > len(b):
                continue
            start = x
            while x < len(a) and y < len(b) and a[x] == b[y]:
                x += 1
                y += 1
            budget.steps -= 1 + x - start
            reached[diagonal] = x
            if x == len(a) and y == len(b):
                return _backtrack(trace, reached, diagonal)
        budget.steps -= distance - len(reached)  # diagonals outside the texts
        if budget.steps <= 0:
            budget.is_exceeded = True
            return []
        trace.append(reached)
        furthest = reached
    raise AssertionError("The last distance replaces everything.")


def _backtrack(trace: list[dict[int, int]], reached: dict[int, int], diagonal: int) -> list[tuple[int, int, int]]:
    matches: list[tuple[int, int, int]] = []
    for distance in range(len(trace), -1, -1):
        x = reached[diagonal]
        if distance == 0:
            start = 0
        else:
            reached = trace[distance - 1]
            down, right = reached.get(diagonal + 1, -1), reached.get(diagonal - 1, -2) + 1
            start = max(down, right)
        if x > start:
            matches.append((start, start - diagonal, x - start))
        if distance:
            diagonal += 1 if down >= right else -1
    return matches[::-1]
