"""An environment on another machine: entered, saved, begun again here, restored there, and after a power cut."""

import shutil
import tempfile
from pathlib import Path

import pytest

from tests import nodes
from tests.journeys import two_machines
from tests.running import apart, ended_well

pytestmark = pytest.mark.journey


@pytest.fixture
def folder():
    """A folder that users of jobs get into, unlike pytest's."""
    made = Path(tempfile.mkdtemp(prefix="aip-two-"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.mark.timeout(900)
def test_environment_lives_on_another_machine_and_moves_by_its_saved_image(folder):
    if why := nodes.why_not():
        pytest.skip(why)
    told = folder / "told.txt"
    ended_well(apart(two_machines.__name__, f"play(Path({str(folder)!r}))", told), told, 600)
