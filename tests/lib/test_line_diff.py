"""Differences of two texts: correct, shortest where the budget suffices, bounded where it does not."""

from __future__ import annotations

import random

from aiplatform.lib.line_diff import Budget, unified_rows


def apply(rows, old):
    """Rebuild the new text from rows that show the whole text."""
    return [text for sign, text in rows if sign in " +"] if rows else old


def length_of_common(old, new):
    table = [[0] * (len(new) + 1) for _row in range(len(old) + 1)]
    for i, line in enumerate(old):
        for j, other in enumerate(new):
            table[i + 1][j + 1] = table[i][j] + 1 if line == other else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


def test_difference_is_correct_and_shortest():
    numbers = random.Random(3)
    for _case in range(300):
        old, new = ([str(numbers.randint(0, 4)) for _line in range(numbers.randint(0, 8))] for _text in range(2))
        budget = Budget()

        rows = unified_rows("\n".join(old), "\n".join(new), budget)

        changed = sum(sign in "+-" for sign, _text in rows)
        assert changed == len(old) + len(new) - 2 * length_of_common(old, new), (old, new)
        if len(old) <= 6:  # context lines reach both ends
            assert apply(rows, old) == new, (old, new)


def test_difference_that_exceeds_the_budget_replaces_what_lies_between_equal_ends():
    budget = Budget(steps=10)

    rows = unified_rows("same\n1\n2\n3\n4\n5\nend", "same\n5\n4\n3\n2\n1\nend", budget)

    assert budget.is_exceeded
    assert [sign for sign, _text in rows] == ["@", " ", *"-----", *"+++++", " "]


def test_difference_has_headers_of_a_unified_difference():
    old = [str(number) for number in range(40)]
    new = [*old[:5], "new", *old[6:30], *old[31:]]

    rows = unified_rows("\n".join(old), "\n".join(new))

    assert [text for sign, text in rows if sign == "@"] == ["@@ -3,7 +3,7 @@", "@@ -28,7 +28,6 @@"]


def test_difference_of_a_long_shuffled_text_is_bounded():
    lines = [str(number % 100) for number in range(30_000)]
    budget = Budget()

    rows = unified_rows("\n".join(lines), "\n".join(sorted(lines)), budget)

    assert budget.is_exceeded
    assert budget.steps > -5000  # stopped within one distance of the limit
    assert sum(sign == "+" for sign, _text in rows) > 29_000
