import os
import signal

import pytest

from tests.fakes.kinds import RememberingKind
from tests.workers.supervised import BEST, Run
from workers.core import kinds
from workers.supervisor import processes, records


@pytest.fixture
def kind():
    """The kind `command`, played by a fake."""
    fake = RememberingKind()
    with kinds.KINDS.temporarily(fake):
        yield fake


@pytest.fixture
def run(tmp_path):
    """Starts commands below supervisors of their own, in the best tier here; nothing of them outlives the test."""
    made = []

    def one(argv, tier=BEST, *, start=True, **more):
        new = Run(tmp_path / str(len(made)), tier, argv, **more)
        made.append(new)
        if start:
            assert new.start() == 0
        return new

    yield one
    for old in made:
        if records.is_alive(old.supervisor):
            os.kill(old.supervisor["pid"], signal.SIGKILL)
        processes.send(old.programs(), signal.SIGKILL)
