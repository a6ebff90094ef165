"""The published grid is what the probes find here."""

import pytest

from tests.isolation import grid
from tests.isolation.ground import Setting
from tests.isolation.probes import kernel, people
from tests.isolation.probes import run as probes
from workers.supervisor import landlock
from workers.supervisor.sandbox import CONTAINER, OWN_UID, PLAIN

pytestmark = pytest.mark.proof


def excused(setting: Setting) -> set[str]:
    """Probes whose answer is this machine's: device files in tier 0, which hides nothing, and what needs Linux 6.12."""
    devices = {probe.__name__ for probe in kernel.PROBES if probe.__name__.startswith("open_")}
    scoped = {probe.__name__ for probe in people.PROBES if "_abstract_" in probe.__name__ or "signal" in probe.__name__}
    is_scoped = landlock.abi() >= 6
    return (devices if setting.tier == PLAIN else set()) | (set() if is_scoped else scoped)


@pytest.mark.parametrize("setting", grid.offered(), ids=grid.name)
def test_sandbox_lets_a_job_no_further_than_the_page_says(setting):
    page = grid.published()
    column = page.get(grid.name(setting))
    if column is None and setting.tier == CONTAINER:  # drawn without an engine: no container may be weaker than a uid
        column = page[grid.name(Setting(OWN_UID, True))]
    assert column is not None, "the page has no such column: python -m tests.isolation"

    found = grid.run(setting)

    further = {probe for probe, answer in found.items() if answer == "possible" and column[probe] == "refused"}
    assert further - excused(setting) == set()
    assert found.keys() == column.keys()


def test_sandbox_probes_try_more_than_sixty_ways():
    names = [probe.__name__ for probe in probes.PROBES]

    assert len(names) == len(set(names)) >= 60
