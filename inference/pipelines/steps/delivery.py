"""Steps that send something: a model to an export target, a message about the run to an address."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from accounts.models import Delivery, User
from accounts.services import named_secrets, notify, outbox
from aiplatform.lib import outbound, wording
from aiplatform.lib.errors import Invalid, Refusals
from inference.delivery.push import pushes
from inference.delivery.push.models import Push, PushTarget
from inference.pipelines.kinds import Begun, Call, Done, Param, Port, StepFailed
from inference.pipelines.models import StepRun
from inference.pipelines.steps import long_running, metric_texts, references, rows, secrets
from inference.registry.models import ModelVersion
from workers.core.clock import now

LONGEST_URL, LONGEST_TEXT = 500, 400
MAX_OUTPUTS, MAX_METRICS = 20, 50  # that a message names


class PushStep(long_running.LastingStep):
    """A model that is sent to a registry, a bucket, a machine."""

    name = "push"
    label = gettext_lazy("Export")
    description = gettext_lazy("Exports a model to one of your export targets: a registry, a bucket, a host.")
    group = "ship"
    icon = "upload"
    needs = Action.MODELS_MANAGE
    inputs = (Port("model", gettext_lazy("Model"), "model"),)
    outputs = (Port("file", gettext_lazy("Storage location"), "file"),)
    params = (
        Param("target", gettext_lazy("Target"), required=True, help=gettext_lazy(
            "The name. For an object of another user: OWNER/NAME.")),
        Param("content", gettext_lazy("Content"), form="choice", default=Push.Content.PACKAGE.value,
              choices=tuple(Push.Content.choices)),
    )  # fmt: skip

    def check(self, params: Mapping[str, Any], user: User) -> None:
        if params.get("target"):
            references.find_required(PushTarget.objects.usable_by(user), params["target"], user, field="target")

    def start(self, call: Call) -> Begun:
        target = references.find_required(
            PushTarget.objects.usable_by(call.user), call.params["target"], call.user, field="target"
        )
        version: ModelVersion = rows.model_version(call.only("model"), call.user)
        started_at = now()
        push = pushes.submit(user=call.user, version=version, target=target, content=call.params["content"])
        stored = {"push": push.pk, "own": push.created_at >= started_at}  # else it was on its way already
        return Begun(stored=stored, look_again=long_running.FIRST_LOOK)

    def go_on(self, row: StepRun) -> Done | None:
        push = Push.objects.filter(pk=row.kept["push"]).first()
        if push is None or push.state == Push.State.STOPPED:
            raise StepFailed(wording.message("pipeline.push_stopped"))
        if push.state == Push.State.FAILED:
            raise StepFailed(push.message)
        if push.state != Push.State.DONE:
            return None
        sent = {"type": "file", "id": push.pk, "label": push.landed[:200] or str(push)[:200], "sha256": push.sha256}
        return Done({"file": sent})

    def stop(self, row: StepRun) -> None:
        push = Push.objects.filter(pk=row.kept["push"]).first()
        if push is not None and row.kept["own"]:
            pushes.stop(push)


class WebhookStep(long_running.LastingStep):
    """Word of the run to an address."""

    name = "webhook"
    label = gettext_lazy("Webhook")
    description = gettext_lazy(
        "Sends the results of the previous steps to an address and waits until they are accepted. Retried for "
        "some hours; deliveries can be repeated, with the same X-Aip-Delivery."
    )
    group = "other"
    icon = "network"
    inputs = (
        Port("for", gettext_lazy("After"), "any", optional=True, many=True),
        Port(metric_texts.PORT, gettext_lazy("Metrics"), "figures", optional=True, many=True),
    )
    params = (
        Param("url", gettext_lazy("Address"), default="", help=gettext_lazy(
            "Leave empty to use the webhook of your settings. Messages to it are signed with its secret; "
            "others are not.")),
        Param("text", gettext_lazy("Text"), form="long", default="", help=metric_texts.HELP),
        Param("secret", gettext_lazy("Signed with"), form="secret", default="", help=gettext_lazy(
            "A secret of the user who runs the pipeline. It signs the body as required by pipeline triggers.")),
        Param("bearer", gettext_lazy("Authorization"), form="secret", default="", help=gettext_lazy(
            "A secret of the user who runs the pipeline, sent as “Authorization: Bearer …”. The address must "
            "start with https://.")),
    )  # fmt: skip

    def check(self, params: Mapping[str, Any], user: User) -> None:
        refusals = Refusals()
        with refusals:
            if "url" in params:
                _check_open(_address(params["url"], user)[0], params.get("bearer") or "")
        for name in ("secret", "bearer"):
            with refusals:
                if params.get(name):
                    named_secrets.check(user, [params[name]], field=name)
        refusals.end()

    def check_links(self, params: Mapping[str, Any], linked: Mapping[str, Sequence[str]], steps: Iterable[str]) -> None:
        metric_texts.check(params.get("text") or "", linked.get(metric_texts.PORT, ()), steps)

    def start(self, call: Call) -> Begun:
        self.check(call.params, call.user)
        url, secret = _address(call.params["url"], call.user)
        proofs = _proofs(call)
        key = f"pipeline-step-{call.row.pk}"
        filled, unknown = metric_texts.filled(call.params["text"], call.inputs.get(metric_texts.PORT, ()))
        text = " ".join(filled.split())[:LONGEST_TEXT] or call.row.step
        title = wording.message(
            "pipeline.hook", name=call.run.pipeline.name, number=call.run.number, text=text, run=call.run.pk,
            step=call.row.step, pipeline=call.run.pipeline_id, outputs=_summarize_outputs(call),
        )  # fmt: skip
        outbox.add(
            Delivery.Channel.WEBHOOK, url, kind="pipeline", key=key, title=title,
            text=metric_texts.unknown_message(unknown), secret="" if outbox.SIGNING in proofs else secret,
            proofs=proofs, url=f"/pipelines/runs/{call.run.pk}/",
        )  # fmt: skip
        return Begun(stored={"delivery": key}, look_again=long_running.FIRST_LOOK)

    def go_on(self, row: StepRun) -> Done | None:
        sent = Delivery.objects.filter(key=row.kept["delivery"]).first()
        if sent is None or sent.state == Delivery.State.FAILED:
            raise StepFailed(wording.message("pipeline.hook_failed", why=sent.error if sent else ""))
        return Done() if sent.state == Delivery.State.SENT else None


def _address(url: str, user: User) -> tuple[str, str]:
    """Return the address of a message, and the secret that signs it: that of the user's own webhook, for it alone.

    Raises:
        Invalid: there is no address, or it is none that may be called. Its name is resolved, and judged, when it is
            sent.
    """
    own, url = notify.choices(user), url.strip()
    if not url and not own.webhook_url:
        raise Invalid(_("Enter an address, or configure a webhook in your settings."), field="url")
    if url and url != own.webhook_url:
        if len(url) > LONGEST_URL:
            message = _("An address can have at most %(most)s characters.") % {"most": LONGEST_URL}
            raise Invalid(message, field="url")
        try:
            outbound.check_written(url, allowed=settings.WEBHOOK_ALLOWED)
        except outbound.ForbiddenAddress as exc:
            raise Invalid(exc.message, field="url") from None
        return url, ""
    return own.webhook_url, own.webhook_secret


def _check_open(url: str, bearer: str) -> None:
    """Refuse to send a secret over an unencrypted connection.

    Raises:
        Invalid.
    """
    if bearer and not url.lower().startswith("https://"):
        message = _("Secrets are sent only to addresses that start with https://; otherwise they could be intercepted.")
        raise Invalid(message, field="bearer")


def _proofs(call: Call) -> dict[str, str]:
    """Return what signs the message and authenticates the sender: secrets of the owner of the run."""
    proofs = {}
    if name := call.params["secret"]:
        proofs[outbox.SIGNING] = named_secrets.values(call.user, [name], field="secret")[name]
    if name := call.params["bearer"]:
        proofs[outbox.BEARER] = secrets.for_header(call.user, name, field="bearer")
    return proofs


def _summarize_outputs(call: Call) -> list[dict[str, Any]]:
    """Return the outputs of the steps before it: types and labels, and metrics by name."""
    summaries = []
    for item in [item for port_references in call.inputs.values() for item in port_references][:MAX_OUTPUTS]:
        summary = {name: item[name] for name in ("type", "id", "label", "step") if name in item}
        if item.get("type") == "figures":
            summary["values"] = dict(list(item.get("values", {}).items())[:MAX_METRICS])
        summaries.append(summary)
    return summaries
