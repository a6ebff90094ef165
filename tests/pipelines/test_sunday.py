"""The template that retrains every Sunday, played through under a simulated clock."""

from datetime import UTC, datetime, timedelta

import pytest

from inference.pipelines import checks, graph, loop, templates, trigger_firings, trigger_settings, writing
from inference.pipelines.kinds import KINDS, Begun, Done, StepFailed
from inference.pipelines.models import PipelineRun
from tests.pipelines.made import states
from workers.core import clock

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("machine")]

SHIPPED = {"people", "train", "evaluate", "compare", "gate", "ship", "crown", "shipped"}
BETTER, ALIKE = {"better.AP50": 1.0}, {"better.AP50": 0.0}


class Script:
    """What each Sunday brings, in place of the steps that take hours; gates, messages, conditions are the real ones."""

    def __init__(self, *sundays):
        self.sundays = list(sundays)

    def kinds(self):
        return [
            self._played(KINDS.get(name)) for name in ("people", "train", "evaluate", "compare", "serve", "register")
        ]

    def _played(self, real):
        script, name = self, real.name

        class Played(type(real)):
            def check(self, params, user):
                pass

            def start(self, call):
                today = script.sundays[PipelineRun.objects.count() - 1]
                if name == "people":
                    enough = today["new"] >= call.params["at_least"]
                    data = {"data": {"type": "file", "label": "cells", "content": today["new"]}} if enough else {}
                    return Begun(done=Done(data, "enough" if enough else "too_few"))
                if name == "serve":
                    if today.get("errors"):
                        raise StepFailed("Its requests failed more often, so the service has the model it had.")
                    return Begun(done=Done({"service": {"type": "file", "label": "cells"}}))
                outputs = {port.name: {"type": "file", "label": port.name} for port in self.outputs}
                if name == "compare":
                    outputs = {"figures": {"type": "figures", "values": today["compared"]}}
                return Begun(done=Done(outputs))

        return Played()


@pytest.fixture
def at(monkeypatch):
    def set_to(moment):
        for module in (trigger_firings, trigger_settings, loop, clock):
            monkeypatch.setattr(module, "now", lambda: moment)

    return set_to


def test_six_sundays(alice, at):
    script = Script(
        {"new": 260, "compared": BETTER},  # the first model
        {"new": 120},  # too few
        {"new": 230, "compared": BETTER},  # in the night when clocks go forward
        {"new": 210, "compared": ALIKE},  # the one after two missed Sundays
        {"new": 500, "compared": BETTER, "errors": True},  # rolled back
    )  # fmt: skip
    at(datetime(2026, 3, 9, 12, tzinfo=UTC))
    with KINDS.temporarily(*script.kinds()):
        made = writing.create(user=alice, name="weekly", spec=templates.spec_of("every_sunday"))
        params = {"project": "Blood", "figure": "AP50"}
        trigger, _secret = trigger_settings.create(
            made, user=alice, kind="cron", schedule="30 2 * * 0", zone="Europe/Berlin", parameters=params
        )
        planned = trigger_settings.next_times(trigger)
        assert [moment.isoformat() for moment in planned[:3]] == [
            "2026-03-15T01:30:00+00:00", "2026-03-22T01:30:00+00:00", "2026-03-29T01:00:00+00:00",
        ]  # fmt: skip
        ends = []
        for sunday in (0, 1, 2, 5, 6):  # two are missed
            moment = planned[0] + timedelta(weeks=sunday, minutes=10)
            at(moment)
            begun = trigger_firings.fire_due()
            run = PipelineRun.objects.order_by("-pk")[0]
            loop.advance_run(run.pk)
            run.refresh_from_db()
            ends.append((begun, run.state, {key for key, state in states(run).items() if state in ("ok", "failed")}))

    assert ends == [
        (1, "ok", SHIPPED),
        (1, "ok", {"people"}),
        (1, "ok", SHIPPED),
        (1, "ok", SHIPPED - {"ship", "crown", "shipped"} | {"same"}),
        (1, "failed", SHIPPED - {"crown", "shipped"} | {"back"}),
    ]
    titles = [str(row.title) for row in alice.notifications.order_by("pk") if row.title.code == "pipeline.news_step"]
    assert [text.partition(": ")[2].partition(" (")[0] for text in titles] == [
        "A better model is in use", "A better model is in use",
        "The new model is not better by a significant margin", "The new model was rolled back",
    ]  # fmt: skip


def test_templates_hold_together(alice):
    for template in templates.TEMPLATES:
        spec = graph.parse(template.spec)
        problems = {(problem.step, problem.field) for problem in checks.problems(spec, alice)}
        assert problems <= {("data", "dataset"), ("annotate", "project"), ("people", "project")}, (
            template.name,
            problems,
        )
