"""Pages of images: the list, one image, building, saving."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy
from django.views.decorators.http import require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from accounts.models import User
from aiplatform.lib import ids
from aiplatform.lib.ordering import ListPage
from aiplatform.lib.pages import check_valid_fields, errors_as_messages, errors_shown_on, is_name_confirmed, needs
from aiplatform.objects import bulk
from aiplatform.objects.pages import ObjectPages, action
from aiplatform.objects.tables import Column, MainColumn, Table
from workers.core.models import Job
from workers.images import usage
from workers.images.containers import adding
from workers.images.filters import ImageFilters
from workers.images.forms import BuildForm, EditForm, SaveForm
from workers.images.models import Image, NodeCopy, State
from workers.images.services import images, saving, uses
from workers.images.store import archive, below, boxes, catalog, compatibility, engines, layers

ALIVE = (State.BUILDING, State.SAVING, State.LOOKING)


class ImagePages(ObjectPages[Image]):
    """Pages of images. Rows that change by themselves are read again."""

    model, filters, form_class = Image, ImageFilters, BuildForm
    namespace, url_names = "images", {"look_up": "look"}
    view_permission, change_permission = Action.JOBS_VIEW, Action.JOBS_SUBMIT
    table = Table(
        MainColumn(
            _("Name"),
            sort="name",
            below="row.about|truncatechars:80",
            is_public="row.visibility == 'public' and not row.built_in",
        ),
        Column(_("Kind"), "row.get_kind_display", sort="kind"),
        Column(_("State"), "{% state_chip row.status row.status_word %}"),
        Column("Python", "row.contents.python|default:'–'"),
        Column("PyTorch", "row.contents.torch|default:'–'"),
        Column(
            _("Size"),
            "{% if row.total_bytes %}{{ row.total_bytes|bytes }}{% else %}–{% endif %}",
            kind="num",
            css="nowrap",
        ),
        Column(_("Used by"), "row.used", kind="num"),
        Column(_("Owner"), template="images/_owner.html", sort="owner"),
        Column(_("Created"), "row.created_at|ago", sort="created", kind="time"),
        anchor="image",
        bulk=(
            bulk.delete(
                "/api/v1/images/0/", _("Images in use are kept."), when="not row.built_in", needs=Action.JOBS_SUBMIT
            ),
        ),
    )
    region, art, title = "images", "package", pgettext_lazy("container", "Images")
    lead = _("Programs for jobs: engines, saved workspaces and containers.")
    filter_label, no_match_text = _("Filter images"), _("No image matches this filter.")
    new_title, save_label = _("Build image"), _("Save")
    form_template, edit_template = "images/new.html", "objects/form.html"
    list_template, detail_template, live_template = "images/list.html", "images/detail.html", "images/_facts.html"

    def prepare(self, request: SignedInRequest, rows: ListPage) -> dict[str, Any]:
        for image in rows:
            image.about = catalog.describe(image)
        return {"refresh_s": request.user.refresh_s if any(image.status in ALIVE for image in rows) else 0}

    def rows(self, request: SignedInRequest, which: str = "visible_to") -> Any:
        catalog.create_all()
        return super().rows(request, which)

    def details(self, request: SignedInRequest, row: Image, is_own: bool) -> dict[str, Any]:
        """What is in an image, where it came from, who uses it."""
        visible_jobs = Job.objects.visible_to(request.user)
        job = row.job if row.is_saved else row.engine.job if row.engine else None
        return {
            "image": row,
            "about": catalog.describe(row),
            "chain": layers.chain(row)[:-1],
            "job": visible_jobs.filter(pk=job.pk).first() if job else None,
            "users": usage.users_of(row) if request.user.sees_everything or row.owner == request.user else [],
            "may_edit": is_own,
            "base": below.shown_facts(row, below.bases_seen(request.user)).get("base", ""),
            "refresh": row.status in ALIVE,
            "can_save": is_own and row.is_saved and row.status == State.FAILED and row.job,
            "can_look": adding.can_look(row),
            "copies": NodeCopy.objects.visible_to(request.user).filter(image=row),
            "machines": compatibility.machines(row) if request.user.can(Action.CLUSTER_VIEW) else [],
            "needs": compatibility.needs_of(row),
            "may_rebuild": is_own and engines.can_edit(row) and request.user.can(Action.JOBS_SUBMIT),
            "can_build": row.kind == Image.Kind.ENGINE and row.status in (State.NEW, State.FAILED),
        }

    def form(self, request: SignedInRequest, row: Image | None = None) -> BuildForm | EditForm:
        if row:
            return EditForm(request.POST or None, instance=row)
        like = ids.number(request.GET.get("like", ""))
        former = Image.objects.visible_to(request.user).filter(pk=like).first() if like is not None else None
        return BuildForm(request.POST or None, initial=engines.similar(former) if former else {})

    def service_check(self, request: SignedInRequest, row: Image | None) -> Any:
        return None if row else partial(engines.check, user=request.user)

    def create(self, request: SignedInRequest, form: Any) -> Image:
        return engines.build(user=request.user, **form.cleaned_data)

    def change(self, request: SignedInRequest, form: Any, row: Image) -> None:
        images.edit(image=row, **form.cleaned_data)

    def remove(self, request: SignedInRequest, row: Image) -> None:
        images.delete(image=row, by=request.user)

    @action(rows="makeable_by")
    def build(self, request: SignedInRequest, row: Image) -> None:
        """Build an engine that is not there, or try again what failed: a build, or the saving of one's own image."""
        images.make(row, by=request.user)

    @action(path="<int:pk>/look/")
    def look_up(self, request: SignedInRequest, row: Image) -> None:
        """Look a container image up again."""
        if row.kind != Image.Kind.CONTAINER:
            raise Http404
        adding.look_up_again(row)


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
