"""Pages of inference services."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.ordering import ListPage
from aiplatform.lib.pages import errors_shown_on
from aiplatform.objects import bulk
from aiplatform.objects.pages import FORM, POST, ObjectPages, action, page
from aiplatform.objects.tables import Column, MainColumn, Table
from inference.evaluation import thresholds
from inference.evaluation.thresholds import BestScore
from inference.kit.task_kinds import TASKS
from inference.registry import class_colors
from inference.registry.models import ModelVersion
from inference.serving import endpoints, host_assignment, model_swaps, tabs, withdrawal
from inference.serving.addresses import is_shared
from inference.serving.filters import ServiceFilters
from inference.serving.forms import ServiceEditForm, ServiceForm, ServiceModelForm
from inference.serving.limits import limits_of
from inference.serving.models import Service
from inference.serving.traffic import statistics
from inference.serving.traffic import views as traffic
from workers.scheduling import preview


class ServicePages(ObjectPages[Service]):
    """Pages of inference services."""

    model, filters = Service, ServiceFilters
    namespace, basename, path = "inference", "service", "services/"
    url_names = {"detail": "service-detail", "change_model": "service-model"}
    view_permission, change_permission = Action.SERVICES_VIEW, Action.SERVICES_MANAGE
    table = Table(
        MainColumn(
            _("Name"),
            "row.name",
            "name",
            is_public="row.visibility == 'public'",
            below="row.description",
            sample_kind="service",
        ),
        Column(_("State"), "{% state_chip row.state %}", css="nowrap"),
        Column(_("Model"), "row.model_name"),
        Column(_("Address"), template="inference/_service_address.html", css="mono small nowrap"),
        Column(
            _("Running"), "{% if row.is_up %}{{ row.running|duration }}{% else %}–{% endif %}", kind="num", css="nowrap"
        ),
        Column(
            _("Requests (24 h)"),
            "{% if row.figures %}{{ row.figures.requests|count }}{% else %}–{% endif %}",
            kind="num",
        ),
        Column(
            _("p95 (24 h)"),
            "{% if row.figures.p95_ms %}{{ row.figures.p95_ms|floatformat:1 }} ms{% else %}–{% endif %}",
            kind="num",
            css="nowrap",
        ),
        Column(_("Owner"), "row.owner", sort="owner"),
        Column(_("Created"), "row.created_at|ago", sort="created", kind="time"),
        Column(_("Actions"), template="inference/_service_buttons.html", kind="actions"),
        libraries="sample",
        bulk=(
            bulk.stop(
                "/api/v1/services/0/stop/",
                _("Requests are refused until the endpoint is started again."),
                when="not row.job.is_final",
                owned=bulk.OWNED,
                needs=Action.SERVICES_MANAGE,
            ),
        ),
    )
    region, art, title = "services", "rocket", _("Endpoints")
    lead = _("Deployed models with an address: for images, or for the Open Inference Protocol.")
    filter_label, no_match_text = _("Filter endpoints"), _("No endpoint matches.")
    empty_text = _("No endpoints yet. Deploy a model to get an address for requests.")
    new_title, offers_sample = _("New endpoint"), True
    delete_shows_refusals = False
    form_template, edit_template = "inference/service_new.html", "inference/service_edit.html"
    detail_template, live_template = "inference/service_detail.html", "inference/_service_head.html"

    def prepare(self, request: SignedInRequest, rows: ListPage) -> dict[str, Any]:
        sees_all = request.user.sees_everything
        figures = statistics.of_day([row for row in rows if sees_all or row.owner_id == request.user.pk])
        for service in rows:
            model_swaps.refresh(service)
            service.figures = figures.get(service.pk)
        return {"origin": _origin(request), "refresh_s": request.user.refresh_s or 5}

    def details(self, request: SignedInRequest, row: Service, is_own: bool) -> dict[str, Any]:
        """What the page needs to try the service, to call it and to control it."""
        service = model_swaps.refresh(row)
        version = service.model_version
        best = thresholds.for_version(version, by=request.user) if version else None
        score = _score_percent(version, best) if version else 0
        return {
            **tabs.context(service, request.user, "service-detail", is_own=is_own),
            "version": version,
            "task_pages": TASKS[version.task].pages if version and version.can_be_evaluated else None,
            "class_colors": json.dumps(class_colors.for_model(version)) if version else "",
            "withdrawn": withdrawal.why_not(service),
            "address": _origin(request) + service.url,
            "may_manage": request.user.can(Action.SERVICES_MANAGE),
            "may_call": request.user.can(Action.SERVICES_CALL),
            "score_percent": score or 30,
            "best_score": best,
            **traffic.trial_context(service),
            "limits": limits_of(service),
            "replicas": _replicas(service),
            "shares": _shares(service) if is_own else [],
            "snippets": _snippets(_origin(request) + service.url, version, score) if version else {},
        }

    def form(self, request: SignedInRequest, row: Service | None = None) -> ServiceForm | ServiceEditForm:
        """The form of a new service, for `?model_version=` or `?model=`, or of the settings of one."""
        if row is None:
            newest = ModelVersion.objects.visible_to(request.user).newest_of(request.GET.get("model", ""))
            initial = {"model_version": request.GET.get("model_version", newest)}
            return ServiceForm(request.POST or None, user=request.user, initial=initial)
        settings = {"description": row.description, "visibility": row.visibility, **limits_of(row)}
        return ServiceEditForm(request.POST or None, initial=settings | {"share_process": host_assignment.wants(row)})

    def form_context(self, request: SignedInRequest, form: Any, row: Service | None) -> dict[str, Any]:
        return {"list_url": reverse("inference:service-list"), "fit_url": reverse("inference:service-fit")}

    def service_check(self, request: SignedInRequest, row: Service | None) -> Any:
        return None if row else partial(endpoints.check, user=request.user)

    def create(self, request: SignedInRequest, form: Any) -> Service:
        return endpoints.create(user=request.user, **form.submission())

    def change(self, request: SignedInRequest, form: Any, row: Service) -> None:
        endpoints.edit(service=row, **form.change())

    def remove(self, request: SignedInRequest, row: Service) -> None:
        endpoints.delete(service=row, by=request.user)

    @page(Action.SERVICES_MANAGE, methods=POST, path="fit/", rows="")
    def fit(self, request: SignedInRequest) -> HttpResponse:
        """The panel in the form: whether it would start now. Incomplete forms are fine."""
        form = ServiceForm(request.POST, user=request.user)
        form.is_valid()
        verdict = preview.preview_request(request.user, form.resources(), kind=endpoints.KIND, unclear=form.unclear())
        return render(request, "workers/_fit.html", {"verdict": verdict})

    @page(methods=FORM, path="<int:pk>/model/", rows="editable_by")
    def change_model(self, request: SignedInRequest, row: Service) -> HttpResponse | None:
        """Serve another version, without a moment in which the service does not answer."""
        form = ServiceModelForm(request.POST or None, service=row, initial=_other_than(row))
        if form.is_valid():
            with errors_shown_on(form):
                model_swaps.change_model(service=row, version=form.cleaned_data["model_version"], by=request.user)
                return None
        context = {"form": form, "row": row}
        return self.render(request, "inference/service_model.html", context, 422 if form.errors else 200)

    @action(shows_refusals=False)
    def start(self, request: SignedInRequest, row: Service) -> None:
        """Start a stopped service again, at the same address."""
        endpoints.start(service=row, by=request.user)

    @action(shows_refusals=False)
    def stop(self, request: SignedInRequest, row: Service) -> None:
        """Stop; it can be started again."""
        endpoints.stop(service=row, by=request.user)


def _other_than(service: Service) -> dict[str, int]:
    """The newest version of its model in use, where it answers with an older one."""
    version = service.model_version
    newest = version.model.versions.in_use().order_by("-number").first() if version else None
    return {"model_version": newest.pk} if newest is not None and newest != version else {}


def _origin(request: SignedInRequest) -> str:
    return f"{request.scheme}://{request.get_host()}"


def _replicas(service: Service) -> dict[str, int]:
    """How many servers a service has, and how many of them answer; empty where it has one."""
    rows = list(service.replicas.filter(leaving_at=None).select_related("job"))
    first = service.job is not None and not service.job.is_final
    return {"all": len(rows) + first, "ready": sum(row.answers for row in rows) + service.answers} if rows else {}


def _shares(service: Service) -> list[Service]:
    """The other services in the process that a service shares."""
    if service.job is None or service.job.is_final or not is_shared(service.job):
        return []
    return list(host_assignment.residents(service.job).exclude(pk=service.pk).order_by("name"))


def _score_percent(version: ModelVersion, best: BestScore | None) -> int:
    """Where the slider of the try-it page begins: the best score of an evaluation, else the model's own."""
    score = best.score if best else version.facts.get("score_threshold", 0.3)
    return min(99, max(1, round(100 * score)))


def _snippets(address: str, version: ModelVersion, score_percent: int) -> dict[str, str]:
    """Ready calls of this service, for the shell and for Python, with the threshold that the page begins with."""
    model = version.model.name
    header = '-H "Authorization: Bearer $AIP_TOKEN"'
    if not version.can_be_evaluated:  # tensors only
        return {"curl": f"curl {header} \\\n     {address}/v2/models/{model}"}
    score = f"{score_percent / 100:g}" if TASKS[version.task].pages.threshold else ""
    query = f"?score_threshold={score}" if score else ""
    curl = f'curl {header} \\\n     -F image=@picture.jpg \\\n     "{address}/predict{query}"'
    python = (
        "import os, requests\n\n"
        f'answer = requests.post(\n    "{address}/predict{query}",\n'
        '    headers={"Authorization": f"Bearer {os.environ[\'AIP_TOKEN\']}"},\n'
        '    files={"image": open("picture.jpg", "rb")},\n)\n'
        f"{TASKS[version.task].pages.snippet}"
    )
    javascript = (
        'import { openAsBlob } from "node:fs";\n\n'
        "const form = new FormData();\n"
        'form.set("image", await openAsBlob("picture.jpg"));\n'
        f'const answer = await fetch("{address}/predict{query}", {{\n'
        '  method: "POST",\n'
        "  headers: { Authorization: `Bearer ${process.env.AIP_TOKEN}` },\n"
        "  body: form,\n"
        "});\n"
        "console.log((await answer.json()).predictions);"
    )
    host = address.split("://", 1)[1]
    parameters = f' parameters={{"score_threshold": {score}}},' if score else ""
    triton = (
        "import os\nimport numpy as np\nimport tritonclient.http as client\n\n"
        f'server = client.InferenceServerClient("{host}")\n'
        'picture = client.InferInput("images", [1], "BYTES")\n'
        'picture.set_data_from_numpy(np.array([open("picture.jpg", "rb").read()], dtype=object))\n'
        f'answer = server.infer("{model}", [picture],{parameters}\n'
        '    headers={"Authorization": f"Bearer {os.environ[\'AIP_TOKEN\']}"})\n'
        'print(answer.as_numpy("predictions"))'
    )
    return {"curl": curl, "python": python, "javascript": javascript, "triton": triton}


def services_of_version(request: SignedInRequest, version: ModelVersion) -> dict[str, Any]:
    """Section of the page of a model: services that answer with a version."""
    rows = version.services.visible_to(request.user).for_list()[:8]
    return {"services": [model_swaps.refresh(service) for service in rows]}
