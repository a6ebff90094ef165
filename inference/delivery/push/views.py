"""Pages of push targets and of pushes."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST, require_safe

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.ordering import ListPage
from aiplatform.lib.pages import errors_as_messages, errors_shown_on, needs
from aiplatform.objects.pages import ObjectPages, action
from aiplatform.objects.tables import Column, MainColumn, Table
from inference.delivery.push import pushes, targets
from inference.delivery.push.filters import PushTargetFilters
from inference.delivery.push.forms import PushForm, PushTargetForm
from inference.delivery.push.models import Push, PushTarget
from inference.delivery.push.protocols import PROTOCOLS
from inference.registry.models import ModelVersion

SHOWN = 50


class PushTargetPages(ObjectPages[PushTarget]):
    """Pages of push targets. A target is tested whenever it is saved."""

    model, form_class, filters = PushTarget, PushTargetForm, PushTargetFilters
    namespace, basename, path = "inference", "push-target", "push/"
    url_names = {"list": "push-list"}
    url_paths = {"new": "new/<slug:kind>/"}
    view_permission, change_permission = Action.MODELS_VIEW, Action.MODELS_MANAGE
    table = Table(
        MainColumn(_("Name"), "row.name", sort="name"),
        Column(_("Kind"), "row.way", sort="kind"),
        Column(_("Address"), "row.address", css="mono small wrap-any"),
        Column(_("Tested"), template="inference/_push_tested.html"),
        Column(_("Visible to"), "row.get_visibility_display"),
        Column(_("Owner"), "row.owner", sort="owner"),
    )
    region, art = "push-targets", "upload"
    title = _("Export targets")
    lead = _("Your own destinations for models: a server, a bucket, a host, a registry.")
    filter_label, no_match_text = _("Filter targets"), _("No target matches.")
    empty_text = _("No targets yet. Add a destination for your models; then export them from their pages.")
    new_title, save_label = _("New target"), _("Save and test")
    form_lead = _("The target is tested when you save it. Secrets are stored encrypted and never shown again.")
    delete_title = _("Delete this target")
    delete_goes = _("Deletes its secret; unfinished pushes to it fail.")
    delete_stays = _("Exported files are kept.")
    form_template, detail_template = "inference/push_target_form.html", "inference/push_target.html"

    @property
    def new_url(self) -> str:
        return reverse(self.names.new, args=["put"])

    def prepare(self, request: SignedInRequest, rows: ListPage) -> dict[str, Any]:
        for target in rows:
            target.way = _kind_label(target)
        return {}

    def details(self, request: SignedInRequest, row: PushTarget, is_own: bool) -> dict[str, Any]:
        options = PROTOCOLS[row.kind].options if row.kind in PROTOCOLS else ()
        facts = [(option.label, row.options.get(option.name)) for option in options]
        return {
            "way": _kind_label(row),
            "facts": [(label, value) for label, value in facts if value not in (None, "")],
            "fingerprint": targets.fingerprint(row),
            "pushes": Push.objects.visible_to(request.user).for_list().filter(target=row)[:SHOWN],
        }

    def form(self, request: SignedInRequest, row: PushTarget | None = None, kind: str = "") -> PushTargetForm:
        protocol = PROTOCOLS.get(row.kind if row else kind)
        if protocol is None:
            raise Http404
        return PushTargetForm(request.POST or None, protocol=protocol, target=row)

    def form_context(self, request: SignedInRequest, form: PushTargetForm, row: PushTarget | None) -> dict[str, Any]:
        return {"way": form.protocol, "ways": PROTOCOLS.values()}

    def create(self, request: SignedInRequest, form: PushTargetForm) -> PushTarget:
        target = targets.create(user=request.user, kind=form.protocol.code, **form.service_params)
        self.test(request, target)
        return target

    def change(self, request: SignedInRequest, form: PushTargetForm, row: PushTarget) -> None:
        self.test(request, targets.change(target=row, by=request.user, **form.service_params))

    def remove(self, request: SignedInRequest, row: PushTarget) -> None:
        targets.delete(target=row, by=request.user)

    @action()
    def test(self, request: SignedInRequest, row: PushTarget) -> None:
        """Test the connection with the credentials."""
        if targets.test(row):
            messages.success(request, gettext("%(name)s responds and accepts the credentials.") % {"name": row.name})
        else:
            messages.error(request, str(row.message))

    @action(path="<int:pk>/host-key/")
    def forget_key(self, request: SignedInRequest, row: PushTarget) -> None:
        """Let the next test pin the key that the host shows then."""
        targets.forget_host_key(target=row, by=request.user)


def _kind_label(target: PushTarget) -> Any:
    protocol = PROTOCOLS.get(target.kind)
    return protocol.label if protocol else target.kind


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
        "ways": PROTOCOLS.values(),
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
