"""B01 inside an annotation project: each role opens what the checked-in table says."""

import pytest

from tests.matrix import roles

pytestmark = [pytest.mark.django_db, pytest.mark.proof]


def test_b01_project_roles_open_what_the_table_says(alice, tmp_path, settings):
    settings.DATA_ROOT = tmp_path / "root"
    found = roles.rows(alice)
    known = roles.read()

    print(f"{len(found)} rows x {len(roles.ROLES)} roles = {len(found) * len(roles.ROLES)} decisions in a project")
    assert {key: row for key, row in found.items() if known.get(key) != row} == {}
    assert known.keys() == found.keys()


def test_b01_project_role_opens_no_more_than_the_next_one():
    """What no change of the table may bring: a viewer where an annotator is refused, and so on up."""
    order = {"i": 1}

    for key, letters in roles.read().items():
        opened = [order.get(letter, 0) for letter in letters]
        assert opened == sorted(opened), key
