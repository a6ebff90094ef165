"""`aip pipeline` against the real API."""

from __future__ import annotations

import argparse
from types import SimpleNamespace

import pytest

from aiplatform.client.commands import pipelines
from inference.pipelines import loop
from inference.pipelines.models import PipelineRun, PipelineTrigger, StepApproval
from tests.factories import work
from tests.pipelines import made

pytestmark = pytest.mark.django_db

TEXT = """\
# Every night
parameters:
  word: {default: hello}

steps:
  # It says so
  say:
    kind: command
    with:
      command: echo ${word}  # nothing else
  ask:
    kind: approve
    with: {question: "Is it well?", people: alice}
    after: [say]
  tell:
    kind: notify
    with: {text: well}
    when: ask.passed
---
layout: {say: [1, 2]}
"""
SCRIPT = """
from aip_pipeline import Pipeline

p = Pipeline()
word = p.parameter("word", "hello")
first = p.command("say", command=f"echo {word} again")
print("this is no specification")
p.notify("tell", text="over", after=[first])
"""


def test_cli_keeps_pipelines_as_files(real_aip, alice, tmp_path, capfd):
    file, script, pulled = tmp_path / "nightly.yaml", tmp_path / "other.py", tmp_path / "nightly.py"
    file.write_text(TEXT)
    script.write_text(SCRIPT)

    assert real_aip(alice, "pipeline", "list") == 0
    assert real_aip(alice, "pipeline", "check", file) == 0
    assert real_aip(alice, "pipeline", "push", file) == 0
    assert real_aip(alice, "pipeline", "pull", file) == 0
    assert file.read_text() == TEXT
    assert real_aip(alice, "pipeline", "diff", "nightly", script) == 0
    assert capfd.readouterr().out.splitlines() == [
        "ask was removed (approve).",
        "say, command: echo ${word} → echo ${word} again.",
        "tell, text: well → over.",
        "tell, when: ask.passed → nothing.",
        'tell, after: nothing → ["say"].',
    ]
    assert real_aip(alice, "pipeline", "push", script, "--pipeline", "nightly", "--note", "less") == 0
    assert real_aip(alice, "pipeline", "pull", pulled) == 0
    assert real_aip(alice, "pipeline", "diff", pulled, "nightly:2") == 0
    assert real_aip(alice, "pipeline", "pull", file, "--pipeline", "nightly:1") == 0
    assert file.read_text() == TEXT
    assert real_aip(alice, "pipeline", "show", "nightly") == 0
    assert real_aip(alice, "--json", "pipeline", "show", "nightly") == 2
    said = capfd.readouterr()
    assert "Both are identical." in said.err
    assert "this is no specification" in said.err
    assert "say, tell" in said.out

    file.write_text(TEXT.replace("ask.passed", "say.passed").replace("kind: approve", "kind: unheard_of"))
    assert real_aip(alice, "pipeline", "check", file) == 1
    assert real_aip(alice, "pipeline", "push", file) == 1
    file.write_text(TEXT + "x: *a")
    assert real_aip(alice, "pipeline", "push", file) in (1, 2)
    script.write_text("raise SystemExit(3)")
    assert real_aip(alice, "pipeline", "check", script) == 1
    assert real_aip(alice, "pipeline", "check", tmp_path / "none.yaml") == 5
    assert real_aip(alice, "pipeline", "diff", "nightly") == 2
    assert real_aip(alice, "pipeline", "pull", file, "--pipeline", "nightly:9") == 5
    said = capfd.readouterr()
    assert "unheard_of" in said.out
    assert "Nothing was saved." in said.err
    assert "exited with 3" in said.err


class Waited:
    """The platform, whose run asks a person and goes on."""

    config = SimpleNamespace(url="http://testserver")

    def __init__(self, run):
        self.run = run

    def get(self, _route):
        self.run.refresh_from_db()
        return {"url": "/pipelines/1/runs/1/", "state": self.run.state, "steps": {"ask": {"state": "asking"}}}


def test_cli_runs_a_pipeline_and_answers_what_it_asks(real_aip, alice, tmp_path, capfd):
    work.node(cores=16)
    file = tmp_path / "nightly.yaml"
    file.write_text(TEXT)
    assert real_aip(alice, "pipeline", "push", file) == 0
    assert real_aip(alice, "pipeline", "run", "nightly:1", "-p", "word=hi", "--fail-fast", "--fresh") == 0
    run = PipelineRun.objects.get()
    assert (run.parameters, run.fail_fast, run.use_cache) == ({"word": "hi"}, True, False)
    loop.advance_run(run.pk)
    made.complete(run, "say")
    assert real_aip(alice, "pipeline", "questions") == 0
    assert real_aip(alice, "pipeline", "approve", StepApproval.objects.get().pk, "--comment", "it is") == 0
    loop.advance_run(run.pk)
    assert real_aip(alice, "pipeline", "status", run.pk) == 0
    assert real_aip(alice, "pipeline", "runs", "nightly", "--state", "ok") == 0
    said = capfd.readouterr()
    assert "Is it well?" in said.out
    assert f"Run {run.number} of nightly (id {run.pk}): ok." in said.err

    clock = ("--schedule", "30 2 * * SUN", "--zone", "Europe/Berlin", "-p", "word=x", "--busy", "allow")
    assert real_aip(alice, "pipeline", "trigger", "nightly", *clock) == 0
    assert real_aip(alice, "pipeline", "trigger", "nightly", "--webhook") == 0
    assert real_aip(alice, "pipeline", "trigger", "nightly", "--schedule", "every day") == 2
    by_clock, hook = PipelineTrigger.objects.order_by("pk")
    assert (by_clock.zone, by_clock.busy, by_clock.parameters) == ("Europe/Berlin", "allow", {"word": "x"})
    assert real_aip(alice, "pipeline", "switch", by_clock.pk, "off", "--version", "1") == 0
    assert real_aip(alice, "pipeline", "triggers", "nightly") == 0
    assert real_aip(alice, "pipeline", "firings", hook.pk) == 0
    assert real_aip(alice, "pipeline", "untrigger", by_clock.pk) == 0
    said = capfd.readouterr()
    assert "Next (UTC): " in said.err
    assert f"/api/v1/pipeline-hooks/{hook.pk}/, signed" in said.err
    assert "five fields" in said.err
    assert "30 2 * * SUN (Europe/Berlin)" in said.out

    assert real_aip(alice, "pipeline", "retry", run.pk, "say", "--fresh") == 0
    loop.advance_run(run.pk)
    assert real_aip(alice, "pipeline", "skip", run.pk, "ask") == 0
    assert real_aip(alice, "pipeline", "cancel", run.pk) == 0
    PipelineRun.objects.update(state="running")
    asked = argparse.Namespace(client=Waited(run), json=False)
    assert (
        pipelines.until_over(asked, run.pk, pause=lambda _s: PipelineRun.objects.update(state="failed"))["state"]
        == "failed"
    )
    assert capfd.readouterr().err.count("ask requests approval") == 1
