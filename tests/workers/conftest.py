import pytest

from tests.fakes.kinds import RememberingKind
from workers import kinds


@pytest.fixture(autouse=True)
def _own_data_root(settings, tmp_path):
    """Row numbers repeat from test to test, so each test has its own run directories."""
    settings.DATA_ROOT = tmp_path


@pytest.fixture
def kind(monkeypatch):
    """The kind `command`, played by a fake."""
    fake = RememberingKind()
    monkeypatch.setitem(kinds._kinds, fake.name, fake)
    return fake
