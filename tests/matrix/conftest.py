import pytest

from tests.matrix import world


@pytest.fixture
def ground(db, tmp_path, settings) -> world.World:
    """One of everything, and the people who ask for it."""
    settings.DATA_ROOT = tmp_path / "root"
    return world.make(tmp_path)
