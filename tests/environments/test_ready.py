"""Environments that become ready: said once, whoever asks, and VS Code is looked for after that."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.environments.helpers import NOTHING, again, judged
from training.environments import jupyter, lifecycle, panel, vscode
from workers.access.proxy.models import PublishedPort
from workers.execution.exec import channels

pytestmark = pytest.mark.django_db


class Here:
    """A pool whose work is done by the caller."""

    def __init__(self, **_about):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_about):
        pass

    map = staticmethod(map)


@pytest.fixture
def looked_into(monkeypatch):
    """Numbers of the environments that were looked into for VS Code; all have one and answer."""
    found: list[int] = []

    def find(way):
        found.append(way)
        return "/usr/bin/code-server"

    monkeypatch.setattr(jupyter, "whom", lambda job, attempt, token: job.pk)
    monkeypatch.setattr(jupyter, "query_server", lambda asked: NOTHING)
    monkeypatch.setattr(channels, "way_to", lambda job, rank=0: job.pk)
    monkeypatch.setattr(vscode, "find", find)
    return found


def test_environment_is_said_ready_once_by_whoever_of_many_asks_first(running, monkeypatch, looked_into):
    row = running()
    late = [again(row), again(row)]  # their pages asked at the same time
    real = jupyter.query_server

    def ask(asked):
        monkeypatch.setattr(jupyter, "query_server", real)
        for other in (late.pop(), late.pop()):
            lifecycle.see_ready(other)
        return real(asked)

    monkeypatch.setattr(jupyter, "query_server", ask)
    monkeypatch.setattr(lifecycle, "ThreadPoolExecutor", Here)
    lifecycle.see_ready(row)

    assert row.job.events.filter(event="ready").count() == 1
    assert looked_into == [row.pk]
    assert again(row).vscode == "code-server"


@pytest.mark.parametrize(
    ("folder", "path"),
    [("", "lab"), ("notes/a b", "lab/tree/notes/a%20b"), ("细胞", "lab/tree/%E7%BB%86%E8%83%9E"), ("x" * 250, "lab")],
)
def test_jupyterlab_opens_in_the_folder_that_was_chosen(running, monkeypatch, looked_into, folder, path):
    row = running()
    row.folder = folder
    row.save()
    monkeypatch.setattr(lifecycle, "ThreadPoolExecutor", Here)

    lifecycle.see_ready(row)

    assert PublishedPort.objects.get(job=row.job, name="jupyter").path == path
    assert f"--LabApp.default_url=/{path}" in jupyter.options(row.job, home=Path("/home/a"), folder=folder)


def test_environment_is_ready_for_others_while_it_is_looked_into(running, monkeypatch, looked_into):
    row, seen = running(), []
    monkeypatch.setattr(vscode, "find", lambda way: seen.append(panel.condition_of(again(row))) or "")
    monkeypatch.setattr(lifecycle, "ThreadPoolExecutor", Here)

    lifecycle.see_ready(again(row))

    assert seen == ["ready"]
    assert again(row).vscode == ""


def test_environment_that_a_dead_process_did_not_look_into_is_by_the_sweep(running, looked_into):
    row = judged(running(), NOTHING)
    assert not vscode.is_offered(row)

    for _turn in range(2):
        lifecycle.look_at_all()

    assert looked_into == [row.pk]
    assert again(row).vscode == "code-server"
    assert PublishedPort.objects.filter(job=row.pk, name=vscode.NAME).count() == 1
