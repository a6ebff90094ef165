"""Asks every route as everybody and writes down the answers; run by `python -m tests.matrix`, collected by no gate."""

import pytest

from tests.matrix import asking


@pytest.mark.proof
def test_the_table_is_written_anew(ground):
    asking.write(dict(asking.rows(ground)))
    assert asking.read()
