"""Projects: list, create, edit, delete; their datasets and people."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib import ids, search
from aiplatform.lib.errors import DomainError
from aiplatform.lib.pages import check_valid_fields, errors_shown_on, is_name_confirmed, needs
from annotation.forms import BeginForm, ConvertForm, MemberForm, ProjectForm, RoleForm
from annotation.models import AnnotationProject, AnnotationSet, ProjectMember
from annotation.orders import PROJECTS
from annotation.services import listing, projects, sets, todo
from annotation.views.lookup import managed, manages, project_of
from datasets.formats.exports import FORMATS
from datasets.models import DatasetVersion

OFFERED = 8  # existing projects offered by the form of a new one


@needs(Action.ANNOTATION_VIEW)
def project_list(request: SignedInRequest) -> HttpResponse:
    """List projects this user may see, by name, after their open work. htmx gets the table alone."""
    searched = request.GET.get("q", "").strip()
    rows = search.filter_by_text(AnnotationProject.objects.visible_to(request.user).for_list(), searched, "name")
    shown = PROJECTS.page(request, rows, size=20)
    mine = managed(request.user, shown.rows)
    for project in shown:
        project.mine = project.pk in mine
    if request.htmx:
        return render(request, "annotation/_project_table.html", {"page": shown})
    first = not searched and not shown.previous_url
    going_on = todo.for_user(request.user) if first and request.user.can(Action.ANNOTATION_ANNOTATE) else []
    return render(request, "annotation/project_list.html", {"page": shown, "todo": going_on})


@needs(Action.ANNOTATION_MANAGE)
def project_create(request: SignedInRequest) -> HttpResponse:
    """A new project; with `?source=` one that begins with that dataset version."""
    if source := request.GET.get("source", ""):
        return _create_around(request, ids.number(source) or 0)
    form = ProjectForm(request.POST or None)
    if form.is_valid():
        with errors_shown_on(form):
            project = projects.create(owner=request.user, **form.cleaned_data)
            return redirect("annotation:project-detail", project.pk)
    else:
        check_valid_fields(form, projects.check, owner=request.user)
    return render(request, "annotation/project_form.html", {"form": form}, status=422 if form.errors else 200)


def _create_around(request: SignedInRequest, source_pk: int) -> HttpResponse:
    """Create a project around a version in one step; existing projects are offered too."""
    usable = DatasetVersion.objects.usable_by(request.user).select_related("dataset")
    source = get_object_or_404(usable, pk=source_pk)
    form = BeginForm(request.POST or None, source=source)
    if form.is_valid():
        fields = {name: value for name, value in form.cleaned_data.items() if name not in ("classes", "shape")}
        labels = form.labels()
        with errors_shown_on(form):
            made = sets.create_with_project(owner=request.user, source=source, labels=labels, **fields)
            if not (source.classes or labels):
                return redirect("annotation:label-list", made.project_id, made.pk)
            images = reverse("annotation:task-list", args=[made.project_id, made.pk])
            return redirect(f"{images}?annotate=1" if request.POST.get("then") == "annotate" else images)
    else:
        check_valid_fields(form, projects.check, owner=request.user)
    mine = AnnotationProject.objects.editable_by(request.user).order_by("-updated_at")[:OFFERED]
    context = {"form": form, "source": source, "mine": mine}
    return render(request, "annotation/project_form.html", context, status=422 if form.errors else 200)


@needs(Action.ANNOTATION_MANAGE)
def project_edit(request: SignedInRequest, project_pk: int) -> HttpResponse:
    project = project_of(request.user, project_pk, manage=True)
    form = ProjectForm(request.POST or None, initial={"name": project.name, "intro": project.intro})
    if form.is_valid():
        with errors_shown_on(form):
            projects.edit(project, **form.cleaned_data)
            return redirect("annotation:project-detail", project.pk)
        project.refresh_from_db()
    context = {"form": form, "project": project}
    return render(request, "annotation/project_form.html", context, status=422 if form.errors else 200)


@needs(Action.ANNOTATION_MANAGE)
@require_POST
def project_delete(request: SignedInRequest, project_pk: int) -> HttpResponse:
    project = project_of(request.user, project_pk, manage=True)
    if not is_name_confirmed(request, project.name):
        return redirect("annotation:project-detail", project.pk)
    projects.delete(project)
    messages.info(request, _("Project %(name)s is deleted.") % {"name": project.name})
    return redirect("annotation:project-list")


@needs(Action.ANNOTATION_VIEW)
def project_detail(request: SignedInRequest, project_pk: int) -> HttpResponse:
    return _detail(request, project_of(request.user, project_pk), MemberForm())


@needs(Action.ANNOTATION_MANAGE)
@require_POST
def member_add(request: SignedInRequest, project_pk: int) -> HttpResponse:
    project = project_of(request.user, project_pk, manage=True)
    form = MemberForm(request.POST)
    if form.is_valid():
        with errors_shown_on(form):
            projects.add_members(project, by=request.user, **form.people())
            return redirect(reverse("annotation:project-detail", args=[project.pk]) + "#people")
    return _detail(request, project, form, status=422)


@needs(Action.ANNOTATION_MANAGE)
@require_POST
def member_remove(request: SignedInRequest, project_pk: int, user_pk: int) -> HttpResponse:
    project = project_of(request.user, project_pk, manage=True)
    projects.remove_member(project, user_id=user_pk)
    return redirect("annotation:project-detail", project.pk)


@needs(Action.ANNOTATION_MANAGE)
@require_POST
def member_role(request: SignedInRequest, project_pk: int, user_pk: int) -> HttpResponse:
    project = project_of(request.user, project_pk, manage=True)
    form = RoleForm(request.POST)
    try:
        if form.is_valid():
            projects.change_role(project, user_id=user_pk, **form.cleaned_data)
    except DomainError as refusal:
        messages.error(request, refusal.message)
    if not manages(request.user, project):  # they changed their own role
        return redirect("annotation:project-list")
    return redirect(reverse("annotation:project-detail", args=[project.pk]) + "#people")


def _detail(
    request: SignedInRequest, project: AnnotationProject, member_form: MemberForm, status: int = 200
) -> HttpResponse:
    sets = list(AnnotationSet.objects.visible_to(request.user).filter(project=project).for_list())
    facts = listing.facts_of(sets)
    for annotation_set in sets:
        annotation_set.progress = facts["progress"][annotation_set.pk]
        annotation_set.conversion = facts["conversions"].get(annotation_set.pk)
    progress = [row.progress for row in sets if row.filled]
    context = {
        "project": project,
        "sets": sets,
        "total": {part: sum(getattr(images, part) for images in progress) for part in ("done", "total")},
        "mine": manages(request.user, project),
        "members": project.memberships.select_related("user").order_by("user__username"),
        "roles": ProjectMember.Role.choices,
        "member_form": member_form,
        "convert_form": ConvertForm(auto_id=False),
        "export_formats": FORMATS,
    }
    return render(request, "annotation/project_detail.html", context, status=status)
