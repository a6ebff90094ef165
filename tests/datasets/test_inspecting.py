"""Images are inspected in processes of their own, each exactly once, whatever becomes of a process."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from datasets.services import inspecting
from datasets.storage import inspector
from tests.datasets.pictures import picture

#: Answers each path by its name; dies over "kill…" always, over "once…" the first time.
STAND_IN = """
import json, os, sys
from pathlib import Path
print("ready", flush=True)
for line in sys.stdin:
    for name in (names := json.loads(line)):
        mark = Path(sys.argv[1], name + ".met")
        if name.startswith("kill") or name.startswith("once") and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), 9)
    print(json.dumps([{"sha256": name} for name in names]), flush=True)
"""


@pytest.fixture
def folder(tmp_path):
    """Twenty-five folders of four images; one image is cut off, one empty."""
    for n in range(100):
        path = tmp_path / str(n // 4) / f"{n}.png"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(picture(10 + n, 20))
    (tmp_path / "3/12.png").write_bytes(picture(400, 400)[:-200])
    (tmp_path / "9/36.png").write_bytes(b"")
    return tmp_path


def sources(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.png"))


@pytest.mark.parametrize(
    "count", [0, 1, inspecting.MAX_IN_PROCESS - 1, inspecting.MAX_IN_PROCESS, inspecting.MAX_IN_PROCESS + 1, 100]
)
def test_inspecting_answers_each_image_once_and_in_order(folder, count):
    asked = sources(folder)[:count]

    got = list(inspecting.inspect_all(folder, asked))

    assert got == [(name, inspector.inspect(folder, name)) for name in asked]


def test_inspecting_goes_on_beyond_one_window(folder, monkeypatch):
    monkeypatch.setattr(inspecting, "WINDOW", 32)

    assert [name for name, _entry in inspecting.inspect_all(folder, sources(folder))] == sources(folder)


def test_D08_inspecting_keeps_the_limit_of_pixels_in_its_processes(folder, monkeypatch):
    monkeypatch.setenv("AIP_MAX_IMAGE_PIXELS", "1000")

    got = dict(inspecting.inspect_all(folder, sources(folder)))

    assert got["24/99.png"]["error"] == {"code": "report.too_many_pixels", "facts": {"most": 1000}}
    assert got["0/0.png"]["width"] == 10


def test_E02_inspecting_follows_no_link_in_its_processes(folder, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "secret.png"
    outside.write_bytes(picture())
    (folder / "0/0.png").unlink()
    (folder / "0/0.png").symlink_to(outside)

    got = dict(inspecting.inspect_all(folder, sources(folder)))

    assert got["0/0.png"]["error"]["code"] == "report.not_followed"


def stand_in(monkeypatch) -> None:
    monkeypatch.setattr(inspecting, "COMMAND", [sys.executable, "-c", STAND_IN])


def test_inspecting_names_the_image_that_takes_its_process_down_and_reads_the_others(tmp_path, monkeypatch):
    stand_in(monkeypatch)
    asked = [f"{n}" for n in range(30)] + ["kill"] + [f"{n}" for n in range(30, 60)]

    got = dict(inspecting.inspect_all(tmp_path, asked))

    assert got.pop("kill")["error"]["code"] == "report.image_ended_reader"
    assert got == {name: {"sha256": name} for name in asked if name != "kill"}


def test_inspecting_reads_an_image_again_whose_process_was_killed_by_accident(tmp_path, monkeypatch):
    stand_in(monkeypatch)
    asked = [f"once{n}" for n in range(40)]

    assert dict(inspecting.inspect_all(tmp_path, asked)) == {name: {"sha256": name} for name in asked}


def test_inspecting_breaks_off_where_no_process_starts(tmp_path, monkeypatch):
    monkeypatch.setattr(inspecting, "COMMAND", [sys.executable, "-c", "raise SystemExit(3)"])

    with pytest.raises(RuntimeError, match="did not start"):
        list(inspecting.inspect_all(tmp_path, [str(n) for n in range(100)]))


def test_inspecting_leaves_no_process_behind_when_its_caller_stops(folder):
    before = children()
    answers = inspecting.inspect_all(folder, sources(folder))
    next(answers)
    during = children()

    answers.close()

    assert during - before
    assert children() <= before


def children() -> set[str]:
    """Processes this one has started and not yet waited for."""
    me, found = str(os.getpid()), set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if stat.read_text().rsplit(")", 1)[1].split()[1] == me:
                found.add(stat.parent.name)
        except OSError:
            continue
    return found
