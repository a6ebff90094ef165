import pytest

from tests.factories import work


@pytest.fixture
def machine(db):
    """A live machine with sixteen cores and no cards."""
    return work.node(cores=16)
