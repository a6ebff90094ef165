"""Annotation projects and their members."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib.errors import Invalid, NameTaken, NotFound, Refusals
from annotation.models import AnnotationProject, ProjectMember

NAME_LENGTH = 100
INTRO_LENGTH = 500

Role = ProjectMember.Role
#: What a person's own roles have to allow, and the sentence where they do not.
NEEDED = {
    Role.VIEWER: (Action.ANNOTATION_VIEW, gettext_lazy("The role of %(name)s does not permit viewing annotations.")),
    Role.ANNOTATOR: (Action.ANNOTATION_ANNOTATE, gettext_lazy("The role of %(name)s does not permit annotating.")),
    Role.REVIEWER: (Action.ANNOTATION_ANNOTATE, gettext_lazy("The role of %(name)s does not permit annotating.")),
    Role.MANAGER: (Action.ANNOTATION_MANAGE, gettext_lazy("The role of %(name)s does not permit managing projects.")),
}


def create(*, owner: User, name: str, intro: str = "") -> AnnotationProject:
    """Make a project.

    Raises:
        Invalid: the name is empty or over 100 characters, the introduction over 500.
        NameTaken: the owner has a project of that name.
    """
    project = AnnotationProject(owner=owner)
    return _save(project, name=name, intro=intro)


def check(*, owner: User, name: str | None = None, intro: str | None = None) -> None:
    """Refuse at once all that `create` would refuse of what is given, and write nothing."""
    _check(AnnotationProject(owner=owner), name, intro).end()


def edit(project: AnnotationProject, *, name: str, intro: str) -> AnnotationProject:
    """Change name and description; refusals as `create`."""
    return _save(project, name=name, intro=intro)


def _save(project: AnnotationProject, *, name: str, intro: str) -> AnnotationProject:
    _check(project, name, intro).end()
    project.name, project.intro = name.strip(), intro.strip()
    try:
        with transaction.atomic():
            project.save()
    except IntegrityError:
        raise _taken() from None
    return project


def _check(project: AnnotationProject, name: str | None, intro: str | None) -> Refusals:
    """Collect the errors in the project's name and description."""
    refusals = Refusals()
    others = AnnotationProject.objects.filter(owner=project.owner_id).exclude(pk=project.pk)
    if name is not None:
        with refusals:
            check_name(name)
            if others.filter(name=name.strip()).exists():
                raise _taken()
    if intro is not None:
        with refusals:
            check_intro(intro)
    return refusals


def check_name(name: str) -> None:
    """Refuse a name that is empty or over 100 characters."""
    if not 1 <= len(name.strip()) <= NAME_LENGTH:
        raise Invalid(_("The name must have 1 to 100 characters."), field="name")


def check_intro(intro: str) -> None:
    """Refuse an introduction of over 500 characters."""
    if len(intro.strip()) > INTRO_LENGTH:
        raise Invalid(_("The description can have at most 500 characters."), field="intro")


def _taken() -> NameTaken:
    return NameTaken(_("You already have a project with this name."))


@transaction.atomic
def delete(project: AnnotationProject) -> None:
    """Remove a project with its classes, shapes and conversions; its datasets stay, unbound.

    Dataset versions made from it stay too.
    """
    for annotation_set in project.sets.all():
        annotation_set.delete()
    project.delete()


@transaction.atomic
def add_member(project: AnnotationProject, *, username: str, by: User, role: str = Role.ANNOTATOR) -> ProjectMember:
    """Give a person a role in the project, in place of one they have.

    Raises:
        Invalid: an unknown name, the owner, or a user whose own role does not allow it.
    """
    person = User.objects.filter(username=username.strip(), is_active=True).first()
    if person is None:
        raise Invalid(_("No user has this username."), field="username")
    if person.pk == project.owner_id:
        raise Invalid(_("This is the owner, who already has full access."), field="username")
    _may_be(person, role, field="username")
    fields = {"role": role}
    member, _made = ProjectMember.objects.update_or_create(
        project=project, user=person, defaults=fields, create_defaults=fields | {"added_by": by}
    )
    return member


@transaction.atomic
def add_members(
    project: AnnotationProject, *, usernames: Iterable[str], by: User, role: str = Role.ANNOTATOR
) -> list[ProjectMember]:
    """Give several people a role, as `add_member`; all of them or, where one cannot have it, none.

    Raises:
        Invalid: no names, or one message for each user who cannot have the role.
    """
    members, problems = [], []
    for username in dict.fromkeys(name.strip() for name in usernames if name.strip()):
        try:
            members.append(add_member(project, username=username, by=by, role=role))
        except Invalid as refusal:
            problems.append(f"{username}: {refusal.message}")
    if problems:
        raise Invalid(" ".join(problems), field="username")
    if not members:
        raise Invalid(_("Choose at least one user."), field="username")
    return members


@transaction.atomic
def change_role(project: AnnotationProject, *, user_id: int, role: str) -> ProjectMember:
    """Give a person of the project another role.

    Raises:
        NotFound: this person has no role in the project.
        Invalid: no such role, or one the person's own role does not allow.
    """
    member = ProjectMember.objects.filter(project=project, user_id=user_id).select_related("user").first()
    if member is None:
        raise NotFound(_("This user is not a member of the project."))
    _may_be(member.user, role, field="role")
    member.role = role
    member.save(update_fields=["role"])
    return member


def mates(user: User) -> QuerySet[Any]:
    """Ids of the people of all projects that `user` owns or is in."""
    mine = AnnotationProject.objects.filter(Q(owner=user) | Q(memberships__user=user)).values("pk")
    together = Q(owned_annotation_projects__in=mine) | Q(annotation_memberships__project__in=mine)
    return User.objects.filter(together).values("pk")


def _may_be(person: User, role: str, *, field: str) -> None:
    if role not in Role.values:
        raise Invalid(_("Choose one of the available roles."), field="role")
    action, sentence = NEEDED[Role(role)]
    if not person.can(action):
        raise Invalid(sentence % {"name": person}, field=field)


def remove_member(project: AnnotationProject, *, user_id: int) -> None:
    """Remove a person from the project; what they drew stays."""
    ProjectMember.objects.filter(project=project, user_id=user_id).delete()
