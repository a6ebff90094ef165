import pytest

from tests.fakes.kinds import RememberingKind
from workers import kinds


@pytest.fixture
def kind():
    """The kind `command`, played by a fake."""
    fake = RememberingKind()
    with kinds.KINDS.temporarily(fake):
        yield fake
