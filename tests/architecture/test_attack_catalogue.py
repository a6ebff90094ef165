"""Every case of the attack catalogue has a test with its id in the name, or a reason that still holds."""

import pytest

from tests.attacks.catalogue import CASES, NOT_YET, held_by


def test_every_case_is_held_by_a_test():
    held = held_by()

    assert sorted(set(CASES) - set(held) - set(NOT_YET)) == []


@pytest.mark.parametrize("case", NOT_YET)
def test_what_does_not_apply_still_does_not(case):
    assert not NOT_YET[case].applies(), f"{case} applies now: {CASES[case]}. Write its test."
    assert case not in held_by()
