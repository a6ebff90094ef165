import sys
from pathlib import Path

import pytest

from aiplatform import env
from tests.environments.helpers import HOUR, NOW, again
from tests.factories import training as factory
from tests.factories import work
from training.environments import services
from training.environments.services import EnvironmentRequest
from workers.core.models import Attempt, Job

STUB = Path(__file__).parents[1] / "fakes" / "jupyter.py"


@pytest.fixture
def machine(db):
    """A live machine with four cores and no cards."""
    return work.node(cores=4)


@pytest.fixture
def stub(tmp_path, monkeypatch):
    """A stand-in for jupyter-lab that environments start, in a folder as programs are installed."""
    program = tmp_path / "engine" / "bin" / "jupyter-lab"
    program.parent.mkdir(parents=True)
    program.write_text(STUB.read_text().replace("#!/usr/bin/env python3", f"#!{sys.executable} -I", 1))
    program.chmod(0o755)
    monkeypatch.setattr(env, "JUPYTER", str(program))
    return program


@pytest.fixture
def cells(alice):
    """Alice's annotated version."""
    return factory.version(alice, "cells")


@pytest.fixture
def submitted(alice, machine):
    """`submitted(folder="work")`: Alice's environment in the queue."""

    def submit(**fields):
        return services.submit(user=alice, request=EnvironmentRequest(**{"cpus": 1.0} | fields))

    return submit


@pytest.fixture
def running(submitted):
    """`running(name="a")`: an environment that has run for ten hours."""

    def run(**fields):
        row = submitted(**fields)
        Job.objects.filter(pk=row.pk).update(state="running", attempt_number=1)
        Attempt.objects.create(job_id=row.pk, number=1, state="running", started_at=NOW - 10 * HOUR)
        return again(row)

    return run
