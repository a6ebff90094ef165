"""The published grid is what the probes find here."""

import os

import pytest

from tests.isolation import grid, probes
from workers.supervisor.sandbox import CONTAINER

pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(os.geteuid() != 0, reason="the published grid was drawn by root"),
]


def published() -> dict[str, list[str]]:
    """Answers by probe, one for each tier."""
    table = grid.PAGE.read_text().partition(grid.BEGIN)[2].partition(grid.END)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.strip().splitlines()[2:]]
    return {row[0].replace(" ", "_"): row[1:] for row in rows}


@pytest.mark.parametrize("tier", grid.offered())
def test_sandbox_lets_a_job_no_further_than_the_page_says(tier, tmp_path):
    for folder in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        folder.chmod(0o755)  # a job of tier 3 is nobody here

    found = grid.run(tier, tmp_path / "ground")

    podman = tier == CONTAINER and grid.containers().engine.startswith("podman")
    excused = {"new_user_namespace"} if podman else set()  # as the page says beside the grid, which is docker's
    further = {
        probe for probe, answer in found.items() if answer == "possible" and published()[probe][tier] == "refused"
    }
    assert further - excused == set()


def test_sandbox_probes_try_thirty_ways():
    assert len(probes.PROBES) >= 30
