"""Celery tasks of images. Each parses its ids, calls one service and returns."""

from __future__ import annotations

import logging

from celery import shared_task

from aiplatform.lib.enqueue import enqueue
from workers.core import queues
from workers.core.models import Node
from workers.images.containers import adding, copies, tidying
from workers.images.models import ImageUse
from workers.images.services import collecting, images, saving
from workers.images.store import boxes, engines, paths

log = logging.getLogger(__name__)


@shared_task(name="images.save", ignore_result=True)
def save(image_id: int) -> None:
    """Save one image, on the node with its box. Safe to run twice."""
    saving.run(image_id)


@shared_task(name="images.look", ignore_result=True)
def look_up(image_id: int) -> None:
    """Look a container image up in its registry. Safe to run twice."""
    adding.run(image_id)


@shared_task(name="images.fetch", ignore_result=True)
def fetch(copy_id: int) -> None:
    """Fetch a container image for this machine. Safe to run twice."""
    copies.run(copy_id)


@shared_task(name="images.collect", ignore_result=True)
def collect(copy_id: int) -> None:
    """Fetch for a machine without the platform's key what needs credentials. Safe to run twice."""
    collecting.collect(copy_id)


@shared_task(name="images.newest", ignore_result=True)
def newest(job_id: int) -> None:
    """Look up for a job on such a machine which image its tag names. Safe to run twice."""
    collecting.newest(job_id)


@shared_task(name="images.clean", ignore_result=True)
def clean(job_id: int) -> None:
    """Delete a box that was given up, on its node."""
    boxes.clean(job_id)


@shared_task(name="images.measure", ignore_result=True)
def measure(job_id: int) -> None:
    """Save the size of a box, on its node."""
    for use in ImageUse.objects.filter(pk=job_id, boxed=True):
        boxes.measure(use)


@shared_task(name="images.tidy", ignore_result=True)
def tidy() -> None:
    """Delete unneeded files on this node: boxes without a row, layers without an image."""
    for job_id in boxes.strays():
        try:
            boxes.clean(job_id)
        except OSError:
            log.exception("box=%s could not be deleted", job_id)
    for parent in (paths.box(0).parent, paths.engine("0").parent):
        paths.finish_removals(parent)
    images.clean_layers()
    tidying.tidy_engine()


@shared_task(name="images.sweep", ignore_result=True)
def sweep() -> None:
    """Continue what a lost message or a dead worker left: saves, builds, forgotten engines; each machine tidies up."""
    steps = (
        saving.resend, saving.sweep_files, adding.resend, collecting.go_on, tidying.tidy_blobs, engines.settle,
        engines.forget_unused,
    )  # fmt: skip
    for step in steps:
        try:
            step()
        except Exception:
            log.exception("step=%s.%s of the sweep failed, the others go on", step.__module__, step.__name__)
    for name in Node.objects.exclude(state=Node.State.REMOVED).values_list("name", flat=True):
        enqueue("images.tidy", queue=queues.work(name))
