"""Projects and the people who annotate in them."""

from __future__ import annotations

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.permissions import Action
from aiplatform.lib.errors import Invalid, NameTaken
from annotation.models import AnnotationProject, ProjectMember

NAME_LENGTH = 15
INTRO_LENGTH = range(10, 51)


def create(*, owner: User, name: str, intro: str) -> AnnotationProject:
    """Open a project.

    Raises:
        Invalid: the name is empty or over 15 characters, the introduction not 10 to 50.
        NameTaken: the owner has a project of that name.
    """
    project = AnnotationProject(owner=owner)
    return _save(project, name=name, intro=intro)


def edit(project: AnnotationProject, *, name: str, intro: str) -> AnnotationProject:
    """Rename or describe anew; refusals as `create`."""
    return _save(project, name=name, intro=intro)


def _save(project: AnnotationProject, *, name: str, intro: str) -> AnnotationProject:
    project.name, project.intro = name.strip(), intro.strip()
    if not 1 <= len(project.name) <= NAME_LENGTH:
        raise Invalid(_("A name has 1 to 15 characters."), field="name")
    if len(project.intro) not in INTRO_LENGTH:
        raise Invalid(_("An introduction has 10 to 50 characters."), field="intro")
    try:
        with transaction.atomic():
            project.save()
    except IntegrityError:
        raise NameTaken(_("You have a project of this name already.")) from None
    return project


@transaction.atomic
def delete(project: AnnotationProject) -> None:
    """Remove a project with its classes, shapes and conversions; its datasets stay, unbound.

    Dataset versions made from it stay too.
    """
    for annotation_set in project.sets.all():
        annotation_set.delete()
    project.delete()


@transaction.atomic
def add_member(project: AnnotationProject, *, username: str, by: User) -> ProjectMember:
    """Let a person annotate in the project; adding twice changes nothing.

    Raises:
        Invalid: nobody of that name, or somebody whose role does not allow annotating.
    """
    person = User.objects.filter(username=username.strip(), is_active=True).first()
    if person is None:
        raise Invalid(_("There is nobody with this username."), field="username")
    if not person.can(Action.ANNOTATION_ANNOTATE):
        raise Invalid(_("The role of %(name)s does not allow annotating.") % {"name": person}, field="username")
    member, _made = ProjectMember.objects.get_or_create(project=project, user=person, defaults={"added_by": by})
    return member


def remove_member(project: AnnotationProject, *, user_id: int) -> None:
    """Take a person off the project; what they drew stays."""
    ProjectMember.objects.filter(project=project, user_id=user_id).delete()
