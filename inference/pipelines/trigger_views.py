"""Pages of triggers: set one up, switch it, delete it."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib import ids, signatures
from aiplatform.lib.pages import errors_as_messages, errors_shown_on, needs
from inference.pipelines import trigger_settings
from inference.pipelines.forms import TriggerForm
from inference.pipelines.models import Pipeline, PipelineTrigger
from inference.pipelines.trigger_api import hook_path

EXAMPLE = """BODY='{"commit": "abc"}'; T=$(date +%%s)
MAC=$(printf '%%s.%%s' "$T" "$BODY" | openssl dgst -sha256 -hmac '%(secret)s' -r | cut -d' ' -f1)
curl --fail -H "%(header)s: t=$T,v1=$MAC" -H 'Content-Type: application/json' -d "$BODY" %(hook)s"""


@needs(Action.JOBS_SUBMIT)
def trigger_new(request: SignedInRequest, pk: int) -> HttpResponse:
    """Set up a trigger; of a webhook the secret is shown once."""
    rows = Pipeline.objects.visible_to(request.user).editable_by(request.user)
    pipeline: Pipeline = get_object_or_404(rows, pk=pk)
    form = TriggerForm(request.POST or None, user=request.user)
    if request.method == "POST" and form.is_valid():
        with errors_shown_on(form):
            trigger, secret = trigger_settings.create(pipeline, user=request.user, **form.to_params())
            if secret:
                return _shown_once(request, trigger, secret)
            return redirect("pipelines:detail", pk)
    context = {"pipeline": pipeline, "form": form}
    return render(request, "pipelines/trigger_new.html", context, status=422 if form.errors else 200)


@require_POST
@needs(Action.JOBS_SUBMIT)
def trigger_switch(request: SignedInRequest, pk: int) -> HttpResponse:
    """Switch it on or off, or have it run another version (`version`)."""
    trigger = _editable(request, pk)
    with errors_as_messages(request):
        if number := ids.number(request.POST.get("version", "")):
            trigger_settings.agree(trigger, number, by=request.user)
        else:
            trigger_settings.switch(trigger, on=request.POST.get("on") == "1", by=request.user)
    return redirect("pipelines:detail", trigger.pipeline_id)


@require_POST
@needs(Action.JOBS_SUBMIT)
def trigger_rotate(request: SignedInRequest, pk: int) -> HttpResponse:
    """Give a webhook a new secret, which is shown once; `at_once=1` ends the older ones now."""
    trigger = _editable(request, pk)
    with errors_as_messages(request):
        trigger, secret = trigger_settings.rotate(trigger, by=request.user, at_once=request.POST.get("at_once") == "1")
        return _shown_once(request, trigger, secret)
    return redirect("pipelines:detail", trigger.pipeline_id)


def _shown_once(request: SignedInRequest, trigger: PipelineTrigger, secret: str) -> HttpResponse:
    hook = request.build_absolute_uri(hook_path(trigger))
    shown = {
        "pipeline": trigger.pipeline, "trigger": trigger, "secret": secret, "hook": hook, "header": signatures.HEADER,
        "example": EXAMPLE % {"secret": secret, "hook": hook, "header": signatures.HEADER},
    }  # fmt: skip
    answer = render(request, "pipelines/webhook.html", shown)
    answer["Cache-Control"] = "no-store"
    return answer


@require_POST
@needs(Action.JOBS_SUBMIT)
def trigger_delete(request: SignedInRequest, pk: int) -> HttpResponse:
    """Delete it; its runs stay."""
    trigger = _editable(request, pk)
    trigger.delete()
    messages.info(request, _("Trigger deleted."))
    return redirect("pipelines:detail", trigger.pipeline_id)


def _editable(request: SignedInRequest, pk: int) -> PipelineTrigger:
    rows = PipelineTrigger.objects.visible_to(request.user).editable_by(request.user)
    trigger: PipelineTrigger = get_object_or_404(rows, pk=pk)
    return trigger
