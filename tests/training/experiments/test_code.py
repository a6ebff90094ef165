"""The code of runs beside each other."""

from __future__ import annotations

import pytest

from tests.factories import training as factory
from training.experiments import code
from training.experiments.models import Run

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


@pytest.fixture
def two(alice, machine, tmp_path):
    """Runs of own code that differ in a file, a new file and a variable."""
    first = factory.code(alice, tmp_path / "one", train="lr = 0.1\nprint(lr)\n", same="x = 1\n")
    second = factory.code(alice, tmp_path / "two", train="lr = 0.2\nprint(lr)\n", same="x = 1\n", new="y = 2\n")
    made = []
    for name, snapshot, value in (("one", first, "a"), ("two", second, "b")):
        given = {"MODE": value, "API_KEY": f"verysecret{value}"}
        training = factory.training(
            alice, version=None, code=snapshot, start_file="train.py", name=name, variables=given, state="running"
        )
        made.append(training.job.run)
    return list(Run.objects.for_comparison().filter(pk__in=[run.pk for run in made]).order_by("pk"))


def test_code_of_runs_differs_by_files_lines_and_variables(two):
    found = {one.path: one.lines for one in code.differences(*two)}

    assert set(found) == {"train.py", "new.py", "<variables>"}
    assert found["train.py"][1:] == [("-", "lr = 0.1"), ("+", "lr = 0.2"), (" ", "print(lr)")]
    assert ("+", "y = 2") in found["new.py"]
    assert ("+", "MODE=b") in found["<variables>"]
    assert "verysecret" not in str(found)
    assert code.differences(two[0], two[0]) == []


def test_binary_and_long_files_are_not_shown_whole(two):
    paths = [run.training.code.path for run in two]
    (paths[0] / "weights.bin").write_bytes(b"\x00\x01")
    (paths[1] / "weights.bin").write_bytes(b"\x00\x02")
    (paths[1] / "long.txt").write_text("line\n" * 5000)

    found = {one.path: one for one in code.differences(*two)}

    assert found["weights.bin"].binary
    assert found["long.txt"].cut
    assert sum(len(one.lines) for one in found.values()) <= code.MAX_LINES


def test_code_that_changed_in_many_places_is_shown_as_replaced(two):
    paths = [run.training.code.path for run in two]
    (paths[0] / "long.txt").write_text("".join(f"{number}\n" for number in range(5000)))
    (paths[1] / "long.txt").write_text("".join(f"{number}\n" for number in reversed(range(5000))))

    found = {one.path: one for one in code.differences(*two)}["long.txt"]

    assert found.lines[0][0] == "@"
    assert "Too many changes" in found.lines[0][1]
    assert found.cut


def test_code_beyond_the_limit_of_bytes_is_not_compared(two, monkeypatch):
    monkeypatch.setattr(code, "MAX_BYTES", 4)

    *_others, last = code.differences(*two)

    assert last.cut
    assert "Not compared" in last.lines[0][1]


def test_page_shows_the_code_to_who_sees_the_jobs_alone(two, as_alice, as_bob):
    query = "&".join(f"run={run.pk}" for run in two)
    page = as_alice.get(f"/training/compare/?{query}").content.decode()
    assert "lr = 0.2" in page
    assert "two compared with one: 3 files differ" in page

    Run.objects.update(visibility="public")
    seen = as_bob.get(f"/training/compare/?{query}")
    assert seen.status_code == 200
    assert "lr = 0.2" not in seen.content.decode()
    assert "against" not in seen.content.decode()
