"""Three machines: joining, working, power cuts, cut cables, a killed database. `pytest -m chaos`."""

import pytest

from tests import nodes
from tests.chaos import machines
from tests.running import apart, ended_well


@pytest.mark.long
@pytest.mark.chaos
def test_cluster_of_three_outlives_its_machines(tmp_path):
    if why := nodes.why_not():
        pytest.skip(why)
    told = tmp_path / "told.txt"
    call = f"tell(Path({str(tmp_path / 'cluster')!r}), {machines.SHORT!r})"
    ended_well(apart(machines.__name__, call, told), told, 3600)
