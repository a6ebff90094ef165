"""Asks every route and door as everybody and writes the answers down; `python -m tests.matrix`, in no gate."""

import pytest

from tests.matrix import asking, doors, roles


@pytest.mark.proof
def test_the_table_is_written_anew(ground):
    asking.write(dict(asking.rows(ground)))
    assert asking.read()


@pytest.mark.proof
async def test_the_table_of_doors_is_written_anew(door_ground):
    doors.write(await doors.rows(door_ground))
    assert doors.read()


@pytest.mark.proof
def test_the_table_of_roles_is_written_anew(db, alice, tmp_path, settings):
    settings.DATA_ROOT = tmp_path / "root"
    roles.write(roles.rows(alice))
    assert roles.read()
