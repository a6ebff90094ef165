"""Commands whose processes meet over two machines: mpirun, gloo, torchrun."""

import pytest

from tests.journeys import machines_that_meet
from tests.running import apart, ended_well

pytestmark = pytest.mark.journey


@pytest.mark.long
@pytest.mark.timeout(900)
def test_processes_of_two_machines_meet(tmp_path):
    if why := machines_that_meet.why_not():
        pytest.skip(why)
    told = tmp_path / "told.txt"
    ended_well(apart(machines_that_meet.__name__, f"play(Path({str(tmp_path / 'cluster')!r}))", told), told, 800)
