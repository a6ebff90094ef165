"""Secrets that steps name, new secrets of webhooks, and texts that say figures."""

from datetime import timedelta

import pytest

from accounts.models import Delivery
from accounts.services import named_secrets, outbox
from aiplatform.lib import outbound, sealed, signatures
from inference.pipelines import checks, graph, secret_usage, text, trigger_settings
from inference.pipelines.models import Pipeline, PipelineRun, PipelineTrigger, PipelineVersion, StepRun
from inference.pipelines.python_text import to_python
from inference.pipelines.steps import metric_texts
from tests.pipelines.made import again, begun, command, complete, pipeline, states, step
from training.commands.models import Command
from workers.core import clock

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("machine")]
USING = {"use": {"kind": "command", "with": {"command": "true", "secrets": ["HF_TOKEN"]}}}


def opened(run):
    return sealed.unseal(Command.objects.get(job=step(run, "use").job).secrets)


def problems(user, steps):
    return [
        (problem.step, problem.field, problem.message)
        for problem in checks.problems(graph.parse({"steps": steps}), user)
    ]


def test_h06_a_step_gets_the_secrets_of_who_runs_it_and_no_row_holds_a_value(alice, bob, client):
    for person, value in ((alice, "alices-own-value"), (bob, "bobs-own-value")):
        named_secrets.add(user=person, name="HF_TOKEN", value=value)
    made = pipeline(alice, USING)
    Pipeline.objects.update(visibility="public")
    first, second = again(made, alice), again(made, bob)
    assert (opened(first), opened(second)) == ({"HF_TOKEN": "alices-own-value"}, {"HF_TOKEN": "bobs-own-value"})

    client.force_login(alice)
    spec = graph.canonical(graph.parse(PipelineVersion.objects.get().spec))
    contents = [str(list(table.objects.values())) for table in (PipelineVersion, PipelineRun, StepRun, Command)]
    contents += [str(step(first, "use").job.spec), text.to_yaml(spec, None), to_python(spec)]
    contents += [
        client.get(f"{path}{second.pk}/").content.decode() for path in ("/pipelines/runs/", "/api/v1/pipeline-runs/")
    ]
    assert not [content for content in contents if "own-value" in content]
    assert [use.label for use in secret_usage.in_pipelines(alice)["HF_TOKEN"]] == [made.name]
    assert secret_usage.in_pipelines(bob) == {}


def test_a_missing_secret_is_a_problem_before_and_fails_the_step_with_the_way_to_it(alice, client):
    assert problems(alice, USING) == [
        ("use", "secrets", "You have no secret HF_TOKEN. Store it at /account/secrets/, then try again.")
    ]
    row = named_secrets.add(user=alice, name="HF_TOKEN", value="some-value")
    assert problems(alice, USING) == []
    run = begun(alice, {"before": command(), "use": USING["use"] | {"after": ["before"]}})
    named_secrets.delete(row, by=alice)
    complete(run, "before")

    assert states(run)["use"] == "failed"
    client.force_login(alice)
    page = client.get(f"/pipelines/runs/{run.pk}/").content.decode()
    assert "You have no secret HF_TOKEN." in page
    assert 'href="/account/secrets/"' in page

    held = {"command": "true", "secrets": "s3cr3t value!", "request": {"secrets": {"A": "s3cr3t"}}}
    for params in (held, held | {"secrets": [], "request": {"variables": {"API_TOKEN": "s3cr3t"}}}):
        [problem, *_more] = problems(alice, {"use": {"kind": "command", "with": params}})
        assert "s3cr3t" not in problem[2]
    train = {"command": "true", "secrets": {"HUB": "s3cr3t-value"}, "variables": {"API_TOKEN": "s3cr3t"}}
    params = {"request": train, "params": {"api_key": "s3cr3t"}}
    problem = {row_[1]: row_[2] for row_ in problems(alice, {"use": {"kind": "train", "with": params}})}
    assert (problem["request"].partition(":")[0], problem["params"].partition(":")[0]) == ("HUB, API_TOKEN", "api_key")
    assert "s3cr3t" not in str(problem)
    stored = {"use": {"kind": "train", "with": {"request": {"command": "true", "secrets": {"HUB": ""}}}}}
    assert "You have no secret HUB." in str(problems(alice, stored))
    assert secret_usage.names_in({"steps": stored}) == ["HUB"]


def test_whoever_runs_a_pipeline_is_told_of_secrets_it_takes_and_figures_hold_none(alice, bob, client):
    named_secrets.add(user=bob, name="HF_TOKEN", value="  bobs-own-value")
    inner = pipeline(alice, USING, name="inner")
    outer = {"sub": {"kind": "pipeline", "with": {"pipeline": str(inner.pk), "version": "1"}}}
    made = pipeline(alice, outer, name="outer")
    Pipeline.objects.update(visibility="public")
    client.force_login(bob)
    assert "these secrets: HF_TOKEN." in client.get(f"/pipelines/{made.pk}/run/").content.decode()

    run = again(made, bob)
    complete(run, "sub/use", figures={"bobs-own-value": 1.0, "right": 2.0})
    assert step(run, "sub/use").outputs["figures"]["values"] == {"*" * 14: 1.0, "right": 2.0}


def test_a_webhook_whose_secret_cannot_be_read_gets_a_new_one(alice):
    trigger, _secret = trigger_settings.create(pipeline(alice, {"one": command()}), user=alice, kind="webhook")
    PipelineTrigger.objects.update(secret="sealed under another key")
    trigger.refresh_from_db()
    with pytest.raises(signatures.BadSignature):
        trigger_settings.delivered(trigger, signature=signatures.header("any", b"", clock.now()), body=b"", facts={})

    trigger, new = trigger_settings.rotate(trigger, by=alice)

    assert sealed.unseal(trigger.secret) == {"secret": new}
    assert trigger.older_until is None


def test_a_webhook_is_signed_and_proven_by_secrets_that_are_named(alice, monkeypatch):
    hook = {"url": "https://example.org/", "secret": "SIGNING", "bearer": "TOKEN", "text": "done"}
    named_secrets.add(user=alice, name="SIGNING", value="what signs it")
    named_secrets.add(user=alice, name="TOKEN", value="what-proves-it")
    run = begun(alice, {"it": {"kind": "webhook", "with": hook}})
    assert "what" not in str(list(Delivery.objects.values("secret", "sealed", "title", "text"))).replace("what'", "")
    sent = []
    monkeypatch.setattr(outbound, "post", lambda url, body, headers, **how: sent.append((body, headers)) or 200)

    assert outbox.deliver(Delivery.objects.get().pk)

    [(body, headers)] = sent
    proven = signatures.verify(["what signs it"], headers[signatures.HEADER], body, clock.now())
    assert proven.key == f"id:pipeline-step-{step(run, 'it').pk}"
    assert headers["Authorization"] == "Bearer what-proves-it"
    assert Delivery.objects.get().sealed == ""
    assert [
        problem[:2]
        for problem in problems(alice, {"it": {"kind": "webhook", "with": hook | {"url": "http://example.org/"}}})
    ] == [("it", "bearer")]
    named_secrets.add(user=alice, name="LINES", value="line one\nline two")
    run = begun(alice, {"it": {"kind": "webhook", "with": hook | {"bearer": "LINES"}}})
    assert "LINES is not valid in a header:" in str(step(run, "it").message)


def test_k06_a_webhook_gets_a_new_secret_and_the_old_one_holds_for_a_day(alice, bob, client, monkeypatch):
    made = pipeline(alice, {"one": command()})
    trigger, old = trigger_settings.create(made, user=alice, kind="webhook")
    client.force_login(alice)
    response = client.post(f"/api/v1/pipeline-triggers/{trigger.pk}/rotate/", {}, content_type="application/json")
    new = response.json()["secret"]
    body, begin = b"{}", clock.now()

    def delivered(secret, number, later):
        monkeypatch.setattr(trigger_settings, "now", lambda: begin + later)
        signed = signatures.header(secret, body, begin + later, number)
        row = PipelineTrigger.objects.get()
        try:
            return trigger_settings.delivered(row, signature=signed, body=body, facts={}) is not None
        except signatures.BadSignature:
            return False
        finally:
            PipelineRun.objects.update(state="ok")

    assert response["Cache-Control"] == "no-store"
    assert delivered(old, "a", timedelta(hours=23))
    assert delivered(new, "b", timedelta(hours=23))
    assert not delivered(old, "c", timedelta(hours=25))
    assert delivered(new, "d", timedelta(hours=25))
    monkeypatch.setattr(trigger_settings, "now", clock.now)
    page = client.post(f"/pipelines/triggers/{trigger.pk}/rotate/")
    third = page.context["secret"]
    assert third in page.content.decode()
    assert delivered(new, "e", timedelta(0))
    trigger_settings.rotate(trigger, by=alice, at_once=True)
    assert not delivered(third, "f", timedelta(0))
    client.force_login(bob)
    assert client.post(f"/pipelines/triggers/{trigger.pk}/rotate/").status_code == 404


def test_texts_say_figures_and_keep_words_that_nobody_measured(alice):
    tell = {"kind": "notify", "with": {"text": 'AP {judge.AP50}, {ap50}, {judge.nothing}, {"a": 1}, $${x}'}}
    steps = {"judge": command(), "tell": tell | {"from": {"figures": ["judge.figures"]}}}
    run = begun(alice, steps)
    complete(run, "judge", figures={"AP50": 0.91234})

    notification = alice.notifications.get(title__code="pipeline.news_step")
    assert notification.title.facts["text"] == 'AP 0.912, 0.912, {judge.nothing}, {"a": 1}, ${x}'
    assert "judge.nothing" in str(notification.text)
    assert "judge.nothing" in str(step(run, "tell").message)
    unlinked = steps | {
        "tell": tell,
        "hook": {"kind": "webhook", "with": {"url": "https://example.org/", "text": "{judge.x}"}},
    }
    assert [problem[:2] for problem in problems(alice, unlinked)] == [
        ("hook", "text"),
        ("tell", "text"),
        ("tell", "text"),
    ]
    hook = {"kind": "webhook", "with": {"url": "https://example.org/", "text": "{judge.AP50}"}}
    complete(
        begun(alice, {"judge": command(), "hook": hook | {"from": {"figures": ["judge.figures"]}}}),
        "judge",
        figures={"AP50": 0.5},
    )
    assert Delivery.objects.get(kind="pipeline").title.facts["text"] == "0.5"
    inside = [{"type": "figures", "step": "sub/judge", "values": {"n": 1234567.0, "tiny": 0.00000012345}}]
    assert metric_texts.filled("{judge.n} {sub.tiny}", inside) == ("1230000 1.23e-07", [])
    assert metric_texts.filled("{judge.n}", []) == ("{judge.n}", [])
