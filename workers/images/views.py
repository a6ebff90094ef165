"""Pages of images: the list, one image, building, saving."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from accounts.models import User
from aiplatform.lib.pages import check_valid_fields, errors_as_messages, errors_shown_on, is_name_confirmed, needs
from workers.core.models import Job
from workers.images import usage
from workers.images.containers import adding
from workers.images.forms import BuildForm, EditForm, SaveForm
from workers.images.models import Image, NodeCopy, State
from workers.images.orders import ORDERING
from workers.images.services import images, saving, uses
from workers.images.store import archive, below, boxes, catalog, compatibility, engines, layers

ALIVE = (State.BUILDING, State.SAVING, State.LOOKING)
KINDS = [("", gettext_lazy("All kinds")), *Image.Kind.choices]


@needs(Action.JOBS_VIEW)
@require_safe
def index(request: SignedInRequest) -> HttpResponse:
    """Images this person may see; `?q=`, `?kind=`, `?mine=1`, `?ordering=`. htmx gets the table alone."""
    catalog.create_all()
    rows = Image.objects.visible_to(request.user).for_list().named_like(request.GET.get("q", "")[:100])
    rows = rows.of_kind(request.GET.get("kind", ""))
    if request.GET.get("mine") == "1":
        rows = rows.filter(owner=request.user)
    page = ORDERING.page(request, rows)
    for image in page:
        image.about = catalog.describe(image)
    alive = any(image.status in ALIVE for image in page)
    context = {"page": page, "kinds": KINDS, "refresh": alive}
    return render(request, "images/_table.html" if request.htmx else "images/list.html", context)


@needs(Action.JOBS_SUBMIT)
def new(request: SignedInRequest) -> HttpResponse:
    """Ask for an engine of packages."""
    form = BuildForm(request.POST or None)
    if form.is_valid():
        with errors_shown_on(form):
            image = engines.build(user=request.user, **form.cleaned_data)
            return redirect("images:detail", image.pk)
    else:
        check_valid_fields(form, engines.check, user=request.user)
    return render(request, "images/new.html", {"form": form}, status=422 if form.errors else 200)


@needs(Action.JOBS_VIEW)
@require_safe
def detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """One image: what is in it, where it came from, who uses it."""
    image = get_object_or_404(Image.objects.visible_to(request.user).for_list(), pk=pk)
    visible_jobs = Job.objects.visible_to(request.user)
    job = image.job if image.is_saved else image.engine.job if image.engine else None
    may_edit = Image.objects.editable_by(request.user).filter(pk=pk).exists()
    context = {
        "image": image,
        "about": catalog.describe(image),
        "chain": layers.chain(image)[:-1],
        "job": visible_jobs.filter(pk=job.pk).first() if job else None,
        "users": usage.users_of(image) if request.user.sees_everything or image.owner == request.user else [],
        "may_edit": may_edit,
        "base": below.shown_facts(image, below.bases_seen(request.user)).get("base", ""),
        "refresh": image.status in ALIVE,
        "can_save": may_edit and image.is_saved and image.status == State.FAILED and image.job,
        "can_look": adding.can_look(image),
        "copies": NodeCopy.objects.visible_to(request.user).filter(image=image),
        "machines": compatibility.machines(image) if request.user.can(Action.CLUSTER_VIEW) else [],
        "needs": compatibility.needs_of(image),
        "can_build": image.kind == Image.Kind.ENGINE and image.status in (State.NEW, State.FAILED),
    }
    return render(request, "images/_facts.html" if request.htmx else "images/detail.html", context)


@needs(Action.JOBS_SUBMIT)
@require_POST
def build(request: SignedInRequest, pk: int) -> HttpResponse:
    """Build an engine that is not there, or try again what failed: a build, or the saving of one's own image."""
    image = get_object_or_404(Image.objects.visible_to(request.user).makeable_by(request.user), pk=pk)
    with errors_as_messages(request):
        images.make(image, by=request.user)
    return redirect("images:detail", pk)


@needs(Action.JOBS_SUBMIT)
def save(request: SignedInRequest, pk: int) -> HttpResponse:
    """Save what was installed in a job; shows before how much that is, and what never goes along."""
    job = get_object_or_404(Job.objects.editable_by(request.user), pk=pk)
    form = SaveForm(request.POST or None)
    if form.is_valid():
        with errors_shown_on(form):
            image = saving.request(job=job, by=request.user, **form.cleaned_data)
            return redirect("images:detail", image.pk)
    else:
        check_valid_fields(form, engines.check_name, user=request.user)
    return render(
        request, "images/save.html", {"form": form, **_box(job, request.user)}, status=422 if form.errors else 200
    )


@needs(Action.JOBS_CONTROL)
@require_POST
def forget(request: SignedInRequest, pk: int) -> HttpResponse:
    """Delete what was installed in a job that is over; its name must have been typed."""
    job = get_object_or_404(Job.objects.editable_by(request.user), pk=pk)
    if is_name_confirmed(request, job.name):
        with errors_as_messages(request):
            boxes.forget(job, by=request.user)
    return redirect("workers:job", pk)


@needs(Action.JOBS_SUBMIT)
def edit(request: SignedInRequest, pk: int) -> HttpResponse:
    """Description, and who may see it."""
    image = get_object_or_404(Image.objects.editable_by(request.user), pk=pk)
    form = EditForm(request.POST or None, instance=image)
    if form.is_valid():
        with errors_shown_on(form):
            images.edit(image=image, **form.cleaned_data)
            return redirect("images:detail", pk)
    return render(request, "images/edit.html", {"form": form, "image": image}, status=422 if form.errors else 200)


@needs(Action.JOBS_SUBMIT)
@require_POST
def delete(request: SignedInRequest, pk: int) -> HttpResponse:
    """Delete an image that nothing needs; its name must have been typed."""
    image = get_object_or_404(Image.objects.editable_by(request.user), pk=pk)
    if not is_name_confirmed(request, image.name):
        return redirect("images:detail", pk)
    with errors_as_messages(request):
        images.delete(image=image, by=request.user)
        return redirect("images:list")
    return redirect("images:detail", pk)


def _box(job: Job, user: User) -> dict[str, Any]:
    """Content of the save page about a job's box."""
    use = uses.find(job)
    figures = boxes.measured(use) if use else None
    return {
        "job": job,
        "use": use,
        "why_not": saving.why_not(job, user),
        "figures": figures,
        "left_out": archive.LEFT_OUT,
        "left_out_on_top": archive.LEFT_OUT_ON_TOP,
        "runs": not job.is_final,
        "owner_below": use.image.owner if use and use.image and use.image.owner != user else None,
        "below": use.image if use and use.image and use.image.kind == Image.Kind.CONTAINER else None,
    }
