"""JupyterLab of an environment in the browser: published on the origin of jobs, never on the platform's own."""

from __future__ import annotations

from urllib.parse import quote

from django.urls import reverse

from workers.access.proxy import addresses, published_ports
from workers.core.models import Job

NAME = "jupyter"  # of the published port


def base_path(job: Job) -> str:
    """The first part of every address of its pages."""
    return addresses.base_path(job.pk, NAME)


def first_page(folder: str) -> str:
    """Where it opens, below its base path: in a folder of the home, or in the home itself."""
    path = f"lab/tree/{quote(folder)}" if folder else "lab"
    return path if len(path) <= published_ports.MAX_PATH_LENGTH else "lab"


def publish(job: Job, *, socket: str, token: str, folder: str = "") -> None:
    """Publish the port; a second call replaces the first."""
    path = first_page(folder)
    published_ports.provide(job, name=NAME, socket=socket, path=path, keeps_path=True, secret=token)


def url(job: Job) -> str:
    """Where a POST leads into it; "" where ports of jobs are not offered."""
    return reverse("ports:open", args=[job.pk, NAME]) if addresses.are_ports_enabled() else ""
