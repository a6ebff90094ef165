"""Which job runs in which image."""

from __future__ import annotations

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError, Invalid
from workers.core.models import Dependency, Job, Node
from workers.core.states import JobState
from workers.images.containers import adding
from workers.images.models import Image, ImageUse, State
from workers.images.store import engines
from workers.supervisor import sandbox


class ImageGone(DomainError, code="image_gone"):
    """A job was submitted with an image that is no longer there for its owner."""


def check(user: User, image: Image | None, *, field: str = "image") -> None:
    """Refuse an image that this user may not use, or that cannot be used at all.

    Raises:
        Invalid: with what to do.
    """
    if image is None:
        return
    if not Image.objects.usable_by(user).filter(pk=image.pk).exists():
        raise Invalid(_("Image not found."), field=field)
    if image.kind != Image.Kind.ENGINE and image.status != State.READY:
        text = _("The image %(name)s is not ready: %(state)s. Wait, or choose another one.")
        raise Invalid(text % {"name": image, "state": image.status_word}, field=field)
    if image.kind == Image.Kind.CONTAINER:
        adding.check_machines(field=field)
    elif only_containers():
        raise Invalid(
            _(
                "All nodes run jobs in containers (isolation tier 4), where %(name)s is not available. Choose "
                "a container image."
            )
            % {"name": image},
            field=field,
        )


def only_containers() -> bool:
    """Whether every machine runs its jobs in containers; False while none has joined."""
    rows = Node.objects.exclude(state=Node.State.REMOVED)
    return rows.exists() and not rows.filter(sandbox_tier__lt=sandbox.CONTAINER).exists()


def tiers_of_waiting() -> dict[int, tuple[int, int]]:
    """Least and most isolation tier by queued job: a container image needs containers, any other forbids them."""
    rows = ImageUse.objects.filter(job__state=JobState.QUEUED, image__isnull=False).values_list("job", "image__kind")
    inside, outside = (sandbox.CONTAINER, sandbox.CONTAINER), (0, sandbox.CONTAINER - 1)
    return {job: inside if kind == Image.Kind.CONTAINER else outside for job, kind in rows}


def attach(job: Job, image: Image | None, *, boxed: bool = False) -> ImageUse | None:
    """Let a job run in an image; where that is not built, a job begins to build it, and this one waits for its end.

    Args:
        boxed: it gets a writable layer that stays as long as the job's row.

    Raises:
        OverLimit, NeverFits: the image is to be built, and that job cannot be started.
    """
    if image is None:
        return None
    if image.kind == Image.Kind.CONTAINER:
        return ImageUse.objects.create(job=job, image=image, name=str(image)[:160], boxed=boxed)
    build = engines.ensure(image, by=job.owner, cluster=job.cluster)
    if build is not None:
        Dependency.objects.get_or_create(job=job, on=build, defaults={"needs": Dependency.Needs.SUCCESS})
    engine = None if image.kind == Image.Kind.ENGINE else image.engine
    return ImageUse.objects.create(job=job, image=image, engine=engine, name=str(image)[:160], boxed=boxed)


def find(job: Job) -> ImageUse | None:
    """The image use of a job, None for the platform's own programs."""
    return ImageUse.objects.filter(job=job).select_related("image__engine", "image__parent", "engine").first()


def image_of(job: Job) -> Image | None:
    """The image of a job, None without one or where it was deleted."""
    use = find(job)
    return use.image if use else None


def check_restore(job: Job) -> None:
    """Refuse to run a job again whose image is deleted, or that its owner may no longer use.

    Raises:
        ImageGone: with what to do. A box of its own needs no one's permission any more.
    """
    use = find(job)
    if use is None:
        return
    if use.image is None:
        raise ImageGone(wording.message("image.gone", name=use.name))
    if not (use.boxed and use.node) and not Image.objects.usable_by(job.owner).filter(pk=use.image.pk).exists():
        raise ImageGone(wording.message("image.not_yours", name=use.name))
