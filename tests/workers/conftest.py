import pytest

from tests.fakes.kinds import RememberingKind
from workers import kinds


@pytest.fixture
def kind(monkeypatch):
    """The kind `command`, played by a fake."""
    fake = RememberingKind()
    monkeypatch.setitem(kinds._kinds, fake.name, fake)
    return fake
