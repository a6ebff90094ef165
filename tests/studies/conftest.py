import pytest

from tests.factories import work


@pytest.fixture
def machine(db):
    """A live machine with four cores and no cards."""
    return work.node(cores=4)
