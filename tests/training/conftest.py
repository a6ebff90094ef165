import pytest

from tests.factories import training as factory
from tests.factories import work


@pytest.fixture
def machine(db):
    """A live machine with four cores and no cards."""
    return work.node(cores=4)


@pytest.fixture
def cells(alice):
    """Alice's annotated detection version."""
    return factory.version(alice, "cells")


@pytest.fixture
def code(alice, tmp_path):
    return factory.code(alice, tmp_path / "mine", train="print(1)\n", helper="x = 1\n")
