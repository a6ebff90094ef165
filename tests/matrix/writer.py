"""Asks every route and entry point as everybody and writes the answers down; `python -m tests.matrix`, in no gate."""

import pytest

from tests.matrix import answers, entry_points, roles


@pytest.mark.proof
def test_the_table_is_written_anew(ground):
    answers.write(dict(answers.rows(ground)))
    assert answers.read()


@pytest.mark.proof
async def test_the_table_of_doors_is_written_anew(entry_point_ground):
    entry_points.write(await entry_points.rows(entry_point_ground))
    assert entry_points.read()


@pytest.mark.proof
def test_the_table_of_roles_is_written_anew(db, alice, tmp_path, settings):
    settings.DATA_ROOT = tmp_path / "root"
    roles.write(roles.rows(alice))
    assert roles.read()
