import pytest

from tests.factories import training as factory
from tests.factories import work
from training.commands import services
from training.commands.services import CommandRequest


@pytest.fixture
def machine(db):
    """A live machine with four cores and no cards."""
    return work.node(cores=4)


@pytest.fixture
def plain(alice):
    """Alice's version that nobody annotated."""
    return factory.version(alice, "plain", task="none")


@pytest.fixture
def cells(alice):
    """Alice's annotated version."""
    return factory.version(alice, "cells")


@pytest.fixture
def code(alice, tmp_path):
    return factory.code(alice, tmp_path / "mine", train="print(1)\n", helper="x = 1\n")


@pytest.fixture
def submitted(alice, machine):
    """`submitted(command="true")`: Alice's command in the queue."""

    def submit(**fields):
        given = {"command": "python train.py", "cpus": 1.0} | fields
        return services.submit(user=alice, request=CommandRequest(**given))

    return submit
