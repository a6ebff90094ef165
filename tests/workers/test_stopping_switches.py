"""A stop of a training with the switches -hint and -CloseDelay reaches the person's program, whatever it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.running import wait_for
from tests.workers.supervised import PYTHON
from training.programs import program

#: A program that saves when it is asked to end.
SAVES = (
    "import pathlib, signal, sys, time\n"
    "def end(*_):\n"
    "    pathlib.Path('../outputs/saved').write_text('whole')\n"
    "    sys.exit(7)\n"
    "signal.signal(signal.SIGTERM, end)\n"
    "print('learns', flush=True)\n"
    "while True: time.sleep(0.01)\n"
)
ENV = {"AIP_HINT": "two words", "AIP_HINT_S": "0", "AIP_CLOSE_DELAY_S": "30"}


FILE = Path(program.__file__).with_name("aip_start.py")
WAYS = {
    "command": [*program.WITH_HINT_AND_DELAY, *program.SHELL, "./command.sh"],
    "file": [PYTHON, str(FILE), "mine.py"],
}


@pytest.mark.parametrize("way", WAYS)
def test_stop_of_a_training_with_a_hint_and_a_delay_lets_the_program_save(run, way):
    job = run(WAYS[way], env=dict(ENV), read_only=[str(FILE.parent)], start=False)
    (job.path / "code/mine.py").write_text(SAVES)
    (job.path / "code/command.sh").write_text(f"echo begins\n{PYTHON} -S mine.py\necho after\n")
    job.start()
    wait_for(lambda: "learns" in job.log())

    job.wish("stop")
    record = job.exit()

    assert (job.path / "outputs/saved").read_text() == "whole"
    assert (record["code"], record["killed"]) == (7, False)
    assert "after" not in job.log()


def test_stop_while_the_hint_stands_starts_no_program(run):
    env = {**ENV, "AIP_HINT_S": "30"}
    job = run([*program.WITH_HINT_AND_DELAY, "sh", "-c", "echo learns; sleep 30"], env=env)
    wait_for(lambda: "two words" in job.log())

    job.wish("stop")

    assert job.exit()["killed"] is False
    assert "learns" not in job.log()
