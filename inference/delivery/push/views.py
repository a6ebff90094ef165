"""Pages of push targets and of pushes."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.pages import errors_as_messages, errors_shown_on, is_name_confirmed, needs
from inference.delivery.push import pushes, targets
from inference.delivery.push.forms import PushForm, PushTargetForm
from inference.delivery.push.models import Push, PushTarget
from inference.delivery.push.orders import PUSH_TARGETS
from inference.delivery.push.protocol import Way
from inference.delivery.push.protocols import WAYS
from inference.registry.models import ModelVersion

SHOWN = 50


@needs(Action.MODELS_VIEW)
@require_safe
def target_list(request: SignedInRequest) -> HttpResponse:
    """Targets this person may use; `?q=`, `?ordering=`. htmx gets the table alone."""
    rows = PushTarget.objects.visible_to(request.user).for_list().named_like(request.GET.get("q", ""))
    page = PUSH_TARGETS.page(request, rows)
    for target in page:
        target.way = _words(target)
    template = "inference/_push_target_table.html" if request.htmx else "inference/push_list.html"
    return render(request, template, {"page": page})


def _words(target: PushTarget) -> Any:
    way = WAYS.get(target.kind)
    return way.words if way else target.kind


@needs(Action.MODELS_MANAGE)
def target_new(request: SignedInRequest, kind: str) -> HttpResponse:
    """The form of a target of one kind; the new one is tested at once."""
    way = WAYS.get(kind)
    if way is None:
        raise Http404
    form = PushTargetForm(request.POST or None, way=way)
    if form.is_valid():
        with errors_shown_on(form):
            target = targets.create(user=request.user, kind=kind, **form.given)
            _tell(request, target, works=targets.test(target))
            return redirect("inference:push-target", target.pk)
    return _form(request, form, way)


def _form(request: SignedInRequest, form: PushTargetForm, way: Way, target: PushTarget | None = None) -> HttpResponse:
    context = {"form": form, "way": way, "ways": WAYS.values(), "target": target}
    return render(request, "inference/push_target_form.html", context, status=422 if form.errors else 200)


@needs(Action.MODELS_VIEW)
@require_safe
def target_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """A target: where it is, how its last test went, what was pushed there."""
    target = get_object_or_404(PushTarget.objects.visible_to(request.user).for_list(), pk=pk)
    way = WAYS.get(target.kind)
    own = PushTarget.objects.editable_by(request.user).filter(pk=pk).exists()
    rows = Push.objects.visible_to(request.user).for_list().filter(target=target)[:SHOWN]
    facts = [(option.words, target.options.get(option.name)) for option in way.options] if way else []
    context = {
        "target": target,
        "way": _words(target),
        "facts": [(words, value) for words, value in facts if value not in (None, "")],
        "fingerprint": targets.fingerprint(target),
        "pushes": rows,
        "may_control": own and request.user.can(Action.MODELS_MANAGE),
    }
    return render(request, "inference/push_target.html", context)


def _own(request: SignedInRequest, pk: int) -> PushTarget:
    target: PushTarget = get_object_or_404(PushTarget.objects.editable_by(request.user).for_list(), pk=pk)
    return target


@needs(Action.MODELS_MANAGE)
def target_edit(request: SignedInRequest, pk: int) -> HttpResponse:
    """Change a target; it is tested again."""
    target = _own(request, pk)
    way = WAYS.get(target.kind)
    if way is None:
        raise Http404
    form = PushTargetForm(request.POST or None, way=way, target=target)
    if form.is_valid():
        with errors_shown_on(form):
            target = targets.change(target=target, by=request.user, **form.given)
            _tell(request, target, works=targets.test(target))
            return redirect("inference:push-target", pk)
    return _form(request, form, way, target)


@require_POST
@needs(Action.MODELS_MANAGE)
def target_test(request: SignedInRequest, pk: int) -> HttpResponse:
    """Ask the place, with its credentials."""
    target = _own(request, pk)
    _tell(request, target, works=targets.test(target))
    return redirect("inference:push-target", pk)


@require_POST
@needs(Action.MODELS_MANAGE)
def target_forget_key(request: SignedInRequest, pk: int) -> HttpResponse:
    """Let the next test pin the key that the host shows then."""
    targets.forget_host_key(target=_own(request, pk), by=request.user)
    return redirect("inference:push-target", pk)


@require_POST
@needs(Action.MODELS_MANAGE)
def target_delete(request: SignedInRequest, pk: int) -> HttpResponse:
    """Forget a target; its name must have been typed."""
    target = _own(request, pk)
    if not is_name_confirmed(request, target.name):
        return redirect("inference:push-target", pk)
    targets.delete(target=target, by=request.user)
    return redirect("inference:push-list")


def _tell(request: SignedInRequest, target: PushTarget, *, works: bool) -> None:
    if works:
        messages.success(request, _("%(name)s answers and takes the credentials.") % {"name": target.name})
    else:
        messages.error(request, str(target.message))


@needs(Action.MODELS_MANAGE)
def version_push(request: SignedInRequest, pk: int) -> HttpResponse:
    """Push a version, and see how far its pushes are."""
    version = get_object_or_404(ModelVersion.objects.usable_by(request.user).select_related("model"), pk=pk)
    form = PushForm(request.POST or None, user=request.user, version=version)
    if form.is_valid():
        with errors_shown_on(form):
            pushes.submit(user=request.user, version=version, **form.cleaned_data)
            return redirect("inference:version-push", pk)
    context = _rows(request, version) | {
        "form": form,
        "has_targets": PushTarget.objects.usable_by(request.user).exists(),
        "ways": WAYS.values(),
    }
    return render(request, "inference/push_version.html", context, status=422 if form.errors else 200)


@needs(Action.MODELS_VIEW)
@require_safe
def version_pushes(request: SignedInRequest, pk: int) -> HttpResponse:
    """The table of pushes alone, which is fetched again while one is on its way."""
    version = get_object_or_404(ModelVersion.objects.visible_to(request.user).select_related("model"), pk=pk)
    return render(request, "inference/_push_rows.html", _rows(request, version))


def _rows(request: SignedInRequest, version: ModelVersion) -> dict[str, Any]:
    rows = list(Push.objects.visible_to(request.user).for_list().filter(version=version)[:SHOWN])
    address = reverse("inference:version-pushes", args=[version.pk])
    return {"version": version, "pushes": rows, "on_its_way": any(not row.is_over for row in rows), "address": address}


@require_POST
@needs(Action.MODELS_MANAGE)
def push_stop(request: SignedInRequest, pk: int) -> HttpResponse:
    """End a push that is on its way."""
    push = get_object_or_404(Push.objects.editable_by(request.user), pk=pk)
    pushes.stop(push)
    return _back(push)


@require_POST
@needs(Action.MODELS_MANAGE)
def push_again(request: SignedInRequest, pk: int) -> HttpResponse:
    """Push once more what failed or was stopped."""
    push = get_object_or_404(Push.objects.editable_by(request.user).for_list(), pk=pk)
    with errors_as_messages(request):
        pushes.again(push, by=request.user)
    return _back(push)


def _back(push: Push) -> HttpResponse:
    if push.version_id:
        return redirect("inference:version-push", push.version_id)
    return redirect("inference:push-list")
