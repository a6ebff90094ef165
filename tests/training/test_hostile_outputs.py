"""What a program leaves behind, said and dated as no sound program would, breaks no page of its training."""

from __future__ import annotations

import html
import io
import json
import os
import re
import subprocess
import zipfile

import pytest

from tests.factories import training as factory
from training.runs import checkpoints, results
from training.runs.models import TrainingJob
from workers.jobs.output import files as output_files

PAGES = ["{pk}/", "{pk}/files/", "{pk}/restore/", ""]
API = ["{pk}/", "{pk}/checkpoints/", "{pk}/files/", ""]
LAST_SECOND = 253_402_300_799  # of the year 9999: tomorrow already, east of Greenwich


@pytest.fixture
def trained(alice, machine, cells):
    alice.time_zone = "Asia/Shanghai"
    alice.save()
    return factory.training(alice, data=cells)


@pytest.fixture
def run(trained):
    run = factory.move(trained, "succeeded")
    (run.outputs / "left").write_text("x")
    return run


@pytest.fixture
def opens(as_alice, trained):
    def opens():
        urls = [f"/training/{page}" for page in PAGES] + [f"/api/v1/training/jobs/{route}" for route in API]
        return {url: as_alice.get(url.format(pk=trained.pk)).status_code for url in urls} == dict.fromkeys(urls, 200)

    return opens


@pytest.mark.parametrize("said", [{"metric": 10**400}, {"epoch": 10**400}, {"time": LAST_SECOND}, {"time": -1e18}],
                         ids=["metric", "epoch", "end-of-time", "before-time"])  # fmt: skip
def test_j05_checkpoint_that_says_what_no_number_holds_breaks_no_page(opens, run, trained, said):
    folder = run.checkpoints / "step-000300"
    folder.mkdir(parents=True)
    (folder / "meta.json").write_text(json.dumps({"step": 300, "files": {}} | said))

    assert opens()
    assert [row.step for row in checkpoints.valid(trained)] == [300]


@pytest.mark.parametrize("moment", [-(2**31), 2**33], ids=["1901", "2242"])
def test_zip_of_outputs_holds_files_dated_where_no_zip_reaches(as_alice, run, trained, moment):
    os.utime(run.outputs / "left", (moment, moment))

    answer = as_alice.get(f"/training/{trained.pk}/files/1/zip/")

    assert zipfile.ZipFile(io.BytesIO(b"".join(answer))).read("left") == b"x"


def test_outputs_are_listed_beside_folders_deeper_than_a_path_can_name(opens, run, trained, monkeypatch):
    monkeypatch.chdir(run.outputs)
    try:
        for _level in range(1000):
            os.mkdir("deeper")
            os.chdir("deeper")
        assert opens()
        assert [row.path for row in output_files.listed(trained.job, 1)[0]] == ["left"]
    finally:
        monkeypatch.undo()
        subprocess.run(["/bin/rm", "-rf", str(run.outputs)], check=True)  # Python's own rmtree does not get down there


@pytest.mark.parametrize("name", ["\\ud800", "a\\u0000b"], ids=["surrogate", "nul"])
def test_j05_figures_whose_names_nothing_can_keep_are_left_out(opens, run, trained, name):
    (run.outputs / "metrics.json").write_text(f'{{"{name}": 1, "loss": 2}}')

    TrainingJob.objects.filter(pk=trained.pk).update(metrics=results.figures(trained, 1))

    assert opens()
    assert results.figures(trained, 1) == {"loss": 2}


ODD = [
    "a b.txt",
    "模型.pt",
    "-rf",
    "<b>&.html",
    'q"uo;te.csv',
    "new\nline",
    "a%2e%2e",
    "deep/er/x.bin",
    "why?.log",
    ".hidden",
]


@pytest.mark.parametrize("name", ODD)
def test_each_file_is_exported_from_the_page_by_the_link_that_stands_there(as_alice, run, trained, name):
    file = run.outputs / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"\x00whole\xff")

    page = as_alice.get(f"/training/{trained.pk}/files/")
    links = [html.unescape(link) for link in re.findall(r'href="(/training/\d+/files/1/content/\?[^"]+)"', page.text)]
    answers = {b"".join(answer): answer for answer in map(as_alice.get, links)}

    answer = answers[b"\x00whole\xff"]
    assert len(links) == 2  # and `left`
    assert answer["Content-Disposition"].startswith("attachment")
    assert "\n" not in answer["Content-Disposition"]
    assert "<b>&" not in page.text


def test_name_that_is_no_text_can_be_exported_too(as_alice, run, trained):
    (run.outputs / os.fsdecode(b"caf\xe9.bin")).write_bytes(b"whole")

    answer = as_alice.get(f"/training/{trained.pk}/files/1/content/", {"path": "caf?.bin"})

    assert b"".join(answer) == b"whole"


def test_large_file_is_exported_in_parts_that_were_missed(as_alice, run, trained):
    size = 64 * 2**20
    with (run.outputs / "large.bin").open("wb") as file:
        file.truncate(size)
        file.seek(size - 4)
        file.write(b"tail")

    answer = as_alice.get(f"/training/{trained.pk}/files/1/content/?path=large.bin", headers={"range": "bytes=-4"})

    assert (answer.status_code, b"".join(answer)) == (206, b"tail")
    assert answer["Content-Range"] == f"bytes {size - 4}-{size - 1}/{size}"
