"""Scripts that nobody wrote for the platform, as own code; all of them: `python -m tests.bench.scripts`."""

from __future__ import annotations

import pytest

from aiplatform.cli.demo.main_job import connect
from tests.bench import scripts
from tests.foreign import STYLES
from tests.journeys.up import first_admin, running

pytestmark = pytest.mark.journey
SWITCHES = "-hint:mine -CloseDelay:1 -keep:5 -ShowStep"


@pytest.mark.long
def test_scripts_of_other_people_run_unchanged_and_one_that_fails_says_why(tmp_path):
    styles = {style.name: style for style in STYLES}
    with running(tmp_path / "platform") as up:
        client = connect(up.url, first_admin(up))
        shell = scripts.run(client, styles["shell"], extra=SWITCHES, variables={"AIP": "none", "OUT": "results"})
        native = scripts.run(client, styles["cpp"])
        learnt = scripts.run(client, styles["hf_trainer"], extra=SWITCHES)
        broken = scripts.run(client, styles["broken"])

    assert [shell.wrong(), native.wrong(), learnt.wrong(), broken.wrong()] == [[], [], [], []]
    assert shell.log.startswith("mine\n")
    assert learnt.log.startswith("mine\n")
    assert learnt.seconds >= 6  # five with the hint, one at the end
    assert (broken.row["state"], broken.exit_code) == ("failed", 1)
    assert "exit code 1" in broken.row["sentence"]
