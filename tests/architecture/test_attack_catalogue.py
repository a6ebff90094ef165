"""Every case of the attack catalogue has a test with its id in the name, or a reason that still holds."""

import pytest

from tests.attacks.catalogue import CASES, NOT_YET, held_by


def test_attack_catalogue_has_a_test_for_every_case():
    held = held_by()

    assert sorted(set(CASES) - set(held) - set(NOT_YET)) == []


@pytest.mark.parametrize("case", NOT_YET)
def test_attack_catalogue_exceptions_still_do_not_apply(case):
    assert not NOT_YET[case].applies(), f"{case} applies now: {CASES[case]}. Write its test."
    assert case not in held_by()
