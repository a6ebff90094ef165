"""Pages of inference services."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.pages import check_valid_fields, errors_shown_on, is_name_confirmed, needs
from inference.evaluation import thresholds
from inference.evaluation.thresholds import BestScore
from inference.kit.task_kinds import TASKS
from inference.registry.models import ModelVersion
from inference.serving import endpoints, host_assignment, model_swaps, withdrawal
from inference.serving.addresses import is_shared
from inference.serving.forms import ServiceEditForm, ServiceForm, ServiceModelForm
from inference.serving.limits import limits_of
from inference.serving.models import Service
from inference.serving.orders import SERVICES
from inference.serving.traffic import views as traffic
from workers.scheduling import preview


@needs(Action.SERVICES_VIEW)
def service_list(request: SignedInRequest) -> HttpResponse:
    """Services the user may see; `?q=`, `?mine=1`, `?ordering=`. htmx gets the table alone."""
    rows = Service.objects.visible_to(request.user).for_list().named_like(request.GET.get("q", ""))
    if request.GET.get("mine") == "1":
        rows = rows.filter(owner=request.user)
    page = SERVICES.page(request, rows)
    for service in page:
        model_swaps.refresh(service)
    context = {"page": page, "origin": _origin(request)}
    template = "inference/_service_table.html" if request.htmx else "inference/service_list.html"
    return render(request, template, context)


@needs(Action.SERVICES_MANAGE)
def service_new(request: SignedInRequest) -> HttpResponse:
    """Make a service; `?model_version=` fills in the model."""
    initial = {name: request.GET[name] for name in ("model_version",) if name in request.GET}
    form = ServiceForm(request.POST or None, user=request.user, initial=initial)
    if form.is_valid():
        with errors_shown_on(form):
            service = endpoints.create(user=request.user, **form.submission())
            return redirect("inference:service-detail", service.pk)
    else:
        check_valid_fields(form, endpoints.check, user=request.user)
    context = {
        "form": form,
        "list_url": reverse("inference:service-list"),
        "fit_url": reverse("inference:service-fit"),
    }
    return render(request, "inference/service_new.html", context, status=422 if form.errors else 200)


@require_POST
@needs(Action.SERVICES_MANAGE)
def service_fit(request: SignedInRequest) -> HttpResponse:
    """The panel in the form: whether it would start now. Incomplete forms are fine."""
    form = ServiceForm(request.POST, user=request.user)
    form.is_valid()
    verdict = preview.preview_request(request.user, form.resources(), kind=endpoints.KIND, unclear=form.unclear())
    return render(request, "workers/_fit.html", {"verdict": verdict})


@needs(Action.SERVICES_VIEW)
def service_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """The page of a service: try it, call it, control it. htmx polls the head."""
    service = model_swaps.refresh(_visible(request, pk))
    version = service.model_version
    own = Service.objects.editable_by(request.user).filter(pk=pk).exists()
    best = thresholds.for_version(version, by=request.user) if version else None
    score = _score_percent(version, best) if version else 0
    context = {
        "service": service,
        "version": version,
        "pages": TASKS[version.task].pages if version and version.can_be_evaluated else None,
        "withdrawn": withdrawal.why_not(service),
        "address": _origin(request) + service.url,
        "own": own,
        "may_manage": request.user.can(Action.SERVICES_MANAGE),
        "samples_waiting": service.samples.filter(dataset=None).count() if own else 0,
        "may_call": request.user.can(Action.SERVICES_CALL),
        "score_percent": score or 30,
        "best_score": best,
        **traffic.trial_context(service),
        "limits": limits_of(service),
        "replicas": _replicas(service),
        "shares": _shares(service) if own else [],
        "snippets": _snippets(_origin(request) + service.url, version, score) if version else {},
    }
    template = "inference/_service_head.html" if request.htmx else "inference/service_detail.html"
    return render(request, template, context)


@needs(Action.SERVICES_MANAGE)
def service_edit(request: SignedInRequest, pk: int) -> HttpResponse:
    """Description, and who may call it."""
    service = get_object_or_404(Service.objects.editable_by(request.user), pk=pk)
    initial = {"description": service.description, "visibility": service.visibility, **limits_of(service)}
    initial["share_process"] = host_assignment.wants(service)
    form = ServiceEditForm(request.POST or None, initial=initial)
    if form.is_valid():
        with errors_shown_on(form):
            endpoints.edit(service=service, **form.change())
            return redirect("inference:service-detail", pk)
    context = {"form": form, "service": service}
    return render(request, "inference/service_edit.html", context, status=422 if form.errors else 200)


@needs(Action.SERVICES_MANAGE)
def service_model(request: SignedInRequest, pk: int) -> HttpResponse:
    """Let it answer with another version, without a moment in which it does not answer."""
    service = _own(request, pk)
    form = ServiceModelForm(request.POST or None, service=service, initial=_other_than(service))
    if form.is_valid():
        with errors_shown_on(form):
            model_swaps.change_model(service=service, version=form.cleaned_data["model_version"], by=request.user)
            return redirect("inference:service-detail", pk)
    context = {"form": form, "service": service}
    return render(request, "inference/service_model.html", context, status=422 if form.errors else 200)


def _other_than(service: Service) -> dict[str, int]:
    """The newest version of its model in use, where it answers with an older one."""
    version = service.model_version
    newest = version.model.versions.in_use().order_by("-number").first() if version else None
    return {"model_version": newest.pk} if newest is not None and newest != version else {}


@require_POST
@needs(Action.SERVICES_MANAGE)
def service_start(request: SignedInRequest, pk: int) -> HttpResponse:
    """Start a stopped service again, at the same address."""
    endpoints.start(service=_own(request, pk), by=request.user)
    return redirect("inference:service-detail", pk)


@require_POST
@needs(Action.SERVICES_MANAGE)
def service_stop(request: SignedInRequest, pk: int) -> HttpResponse:
    """Stop; it can be started again."""
    endpoints.stop(service=_own(request, pk), by=request.user)
    return redirect("inference:service-detail", pk)


@require_POST
@needs(Action.SERVICES_MANAGE)
def service_delete(request: SignedInRequest, pk: int) -> HttpResponse:
    """Remove a service; its name must have been typed."""
    service = _own(request, pk)
    if not is_name_confirmed(request, service.name):
        return redirect("inference:service-detail", pk)
    endpoints.delete(service=service, by=request.user)
    return redirect("inference:service-list")


def _visible(request: SignedInRequest, pk: int) -> Service:
    service: Service = get_object_or_404(Service.objects.visible_to(request.user).for_list(), pk=pk)
    return service


def _own(request: SignedInRequest, pk: int) -> Service:
    rows = Service.objects.editable_by(request.user).select_related("job", "model_version__model")
    service: Service = get_object_or_404(rows, pk=pk)
    return service


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
