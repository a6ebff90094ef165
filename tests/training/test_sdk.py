"""The SDK `aip` as a script uses it: in a job, outside of one, and with several ranks."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from tests.factories import work
from training.presets import checkpoints
from training.programs import sdk_files
from workers.core.models import HAS_VALUE, Curve
from workers.jobs.output import metrics

pytestmark = pytest.mark.django_db


@pytest.fixture
def place(tmp_path):
    """A folder with the SDK, as beside the code of a job or in site-packages."""
    sdk_files.write(tmp_path)
    return tmp_path


def run(place, script, **env):
    """Run a script and return what it printed; it must not fail."""
    script = textwrap.dedent(script)
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, cwd=place, env={"PATH": os.environ["PATH"], **env},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def reported(place):
    return [json.loads(line) for line in (place / "metrics.jsonl").read_text().splitlines()]


NUMBERS = """
    import decimal, fractions
    import numpy as np, torch
    import aip
    aip.report(np.int64(3), {
        "float32": np.float32(0.5), "tensor": torch.tensor(1.5, requires_grad=True), "one": np.array([[7]]),
        "decimal": decimal.Decimal("1.25"), "fraction": fractions.Fraction(1, 4), "bool": True, "int": 2,
        "half": torch.tensor(2.0, dtype=torch.bfloat16), "nan": float("nan"), "inf": np.inf, "low": -torch.inf,
        "outer": {"inner": 3}, 5: 6, "Any name: «ü»": 1,
    })
"""


def test_report_takes_numbers_of_any_library(place):
    run(place, NUMBERS, AIP_METRICS_FILE=str(place / "metrics.jsonl"))

    row = reported(place)[0]
    del row["time"]
    assert row == {
        "step": 3, "float32": 0.5, "tensor": 1.5, "one": 7.0, "decimal": 1.25, "fraction": 0.25, "bool": 1.0, "int": 2,
        "half": 2.0, "nan": "NaN", "inf": "Infinity", "low": "-Infinity", "outer/inner": 3, "5": 6, "Any name: «ü»": 1,
    }  # fmt: skip


def test_report_counts_steps_and_names_what_it_leaves_out_once(place):
    printed = run(place, """
        import aip
        for _ in range(3):
            aip.report(loss=1, words="no number", list=[1, 2])
        aip.report({"loss": 2})
        aip.report("seven", loss=3)
        aip.report(10**400, loss=4)
        aip.report(20, loss=10**400)
        aip.report(21)
        """, AIP_METRICS_FILE=str(place / "metrics.jsonl"))  # fmt: skip

    assert [(row["step"], row["loss"]) for row in reported(place)] == [(0, 1), (1, 1), (2, 1), (3, 2), (4, 3), (5, 4)]
    assert printed.count("aip.report 'words'") == printed.count("aip.report 'list'") == 1
    assert "'seven' is not a step" in printed


def test_nothing_ends_a_training_on_a_full_disk_or_a_closed_output(place):
    run(place, """
        import aip, sys
        sys.stdout.close()
        aip.report(1, loss=float("nan"), what="text")
        aip.report(1, loss=2)
        assert aip.checkpoint(1, {"a": b"x"}) is None
        aip.image("broken", object(), 1)
        aip.audio("broken", "missing.wav")
        assert aip.params({"lr": 1}) == {"lr": 1}
        assert not aip.should_stop()
        """, AIP_METRICS_FILE="/dev/full", AIP_CHECKPOINT_DIR="/dev/null/x", AIP_PARAMS="/dev/null")  # fmt: skip


def test_outside_of_a_job_all_calls_are_harmless(place):
    printed = run(place, """
        import aip
        assert not aip.in_job()
        aip.report(1, {"loss": 0.5})
        assert aip.restored() is None
        assert aip.dataset("digits").name == "digits" and aip.datasets() == []
        assert aip.params() == {}
        aip.text("notes", "words")
        aip.keep_to_share()
        with aip.profile(steps=1, skip=0) as profiling:
            profiling.step()
        """)  # fmt: skip

    assert '"loss": 0.5' in printed


def test_values_that_are_not_finite_are_stored_and_shown_as_gaps(alice, cluster, place):
    job = work.job(alice, cluster, state="running")
    folder = work.run_dir(job)
    run(place, """
        import aip
        for step, value in enumerate([1.0, float("nan"), 3.0, float("inf"), 2.0, float("nan")]):
            aip.report(step, loss=value, always=float("nan"))
        """, AIP_METRICS_FILE=str(folder.metrics))  # fmt: skip

    metrics.ingest(job.attempts.get())

    curves = metrics.curves(job)
    assert curves.series["loss"] == [(0, 1.0), (1, None), (2, 3.0), (3, None), (4, 2.0), (5, None)]
    assert curves.series["always"] == [(step, None) for step in range(6)]
    row = Curve.objects.get(key="loss")
    assert (row.count, row.step, row.value, row.lowest, row.highest) == (6, 4, 2.0, 1.0, 3.0)
    assert list(Curve.objects.filter(HAS_VALUE).values_list("key", flat=True)) == ["loss"]
    json.dumps(metrics.since(job, {})[0], allow_nan=False)


def test_thinned_curves_keep_their_extremes_and_gaps(alice, cluster):
    values = np.sin(np.arange(9_000) / 100)
    values[4_000], values[7_777], values[5_000:5_010] = -9, 9, math.nan
    rows = [(step, value, 1.0) for step, value in enumerate(values)]
    from workers.jobs.output import point_files

    thinned = metrics.thin(np.array(rows, point_files.POINT), 300)

    assert len(thinned) <= 300
    assert (np.nanmin(thinned["value"]), np.nanmax(thinned["value"])) == (-9, 9)
    assert np.isnan(thinned["value"]).sum() == 1


CHECKPOINTS = """
    import numpy as np, torch
    from pathlib import Path
    import aip
    Path("runs/last").mkdir(parents=True); Path("runs/last/part.bin").write_bytes(b"1")
    parts = {"nested/model.pt": {"w": torch.ones(2)}, "notes.txt": "ü", "copy": Path("runs")}
    aip.checkpoint(np.int64(1), parts, np.float32(0.9))
    aip.checkpoint(torch.tensor(2), "runs/last", metric=0.5)
    aip.checkpoint(3, lambda folder: (folder / "state").write_text("3"), metric=float("nan"))
    aip.checkpoint(4, lambda folder: 1 / 0)
    aip.checkpoint(5, {"../outside": b"x"})
    print(aip.restored().name)
"""


def test_checkpoints_hold_files_and_folders_and_fail_alone(place):
    printed = run(place, CHECKPOINTS, AIP_CHECKPOINT_DIR=str(place / "kept"))

    kept = place / "kept"
    assert printed.splitlines()[-1] == "step-000003"
    assert (kept / "best").resolve().name == "step-000001"
    assert sorted(checkpoints.meta(kept / "step-000001")["files"]) == [
        "copy/last/part.bin", "nested/model.pt", "notes.txt",
    ]  # fmt: skip
    assert checkpoints.meta(kept / "step-000002")["files"].keys() == {"last/part.bin"}
    assert not (place / "outside").exists()
    assert [path.name for path in kept.glob("*.tmp")] == []
    assert "step 4 was not kept, ZeroDivisionError" in printed


RANKS = """
    import os, sys, time
    from pathlib import Path
    import aip
    rank = int(os.environ["RANK"])
    def save(folder):
        time.sleep(0.2 * rank)
        if rank == 1 and sys.argv[1:] == ["fails"]:
            raise RuntimeError("no memory")
        (folder / f"part-{rank}.bin").write_text(str(rank))
    for step in (1, 2, 2):
        print(aip.checkpoint(step, save, sharded=True))
    print(aip.checkpoint(9, {"whole": b"x"}))
"""


@pytest.mark.parametrize("mode", ["works", "fails"])
def test_ranks_write_one_checkpoint_together_or_none(place, mode):
    env = {"PATH": os.environ["PATH"], "AIP_CHECKPOINT_DIR": str(place / "kept"), "WORLD_SIZE": "3"}
    (place / "kept" / ".step-000009.0-0-1.tmp.ranks").mkdir(parents=True)  # of an attempt that was killed
    words = [sys.executable, "-c", textwrap.dedent(RANKS), mode]
    ranks = [
        subprocess.Popen(words, cwd=place, env={**env, "RANK": str(rank)}, stdout=subprocess.PIPE, text=True)
        for rank in range(3)
    ]
    printed = [rank.communicate(timeout=60)[0].splitlines() for rank in ranks]

    kept = place / "kept"
    assert [rank.returncode for rank in ranks] == [0, 0, 0]
    assert list(kept.glob(".step-*")) == []
    names = {path.name for path in kept.iterdir() if path.is_dir() and not path.is_symlink()}
    if mode == "works":
        assert names == {"step-000002", "step-000009"}
        assert checkpoints.meta(kept / "step-000002")["files"].keys() == {f"part-{rank}.bin" for rank in range(3)}
        steps = [[line.rpartition("-")[2] for line in lines[:3]] for lines in printed]
        assert steps == [["000001", "000002", "000002"]] * 3
    else:
        assert names == {"step-000009"}
        assert any("rank 1: RuntimeError: no memory" in line for line in printed[0])
        assert printed[1][-4:] == ["None"] * 4
