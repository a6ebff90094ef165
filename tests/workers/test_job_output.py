"""What a program may do with its output, and what of that its supervisor must not feel."""

from __future__ import annotations

import pytest

from tests.workers.supervised import BEST, PYTHON, Run
from workers.supervisor import sandbox

TIERS = [tier for tier in range(sandbox.CONTAINER) if tier <= BEST]
UNALIGNED = """
import fcntl, os, time
print("here", flush=True)
fcntl.fcntl(1, fcntl.F_SETFL, os.O_APPEND | os.O_DIRECT)
time.sleep(60)
"""


@pytest.mark.parametrize("tier", TIERS)
def test_f09_program_that_wants_aligned_output_keeps_its_time_limit(tmp_path, tier):
    run = Run(tmp_path / "run", tier, [PYTHON, "-c", UNALIGNED], max_runtime_s=1.0, term_grace_s=0.2)
    run.start()

    assert run.exit()["limit"] == "max_runtime"
    assert run.log() == "here\n[program] over_time seconds=1\n"


@pytest.mark.skipif(BEST < sandbox.OWN_UID, reason="jobs have no user of their own here")
def test_program_with_a_user_of_its_own_cannot_empty_its_log_by_opening_it_anew(tmp_path):
    script = "echo first >&2; echo anew > /dev/stderr; echo last >&2"
    run = Run(tmp_path / "run", sandbox.OWN_UID, ["sh", "-c", script])
    run.start()

    assert run.exit()["code"] == 0
    first, refused, last = run.log().splitlines()
    assert (first, last) == ("first", "last")
    assert refused.endswith("Permission denied")
