"""Template tag of SSH: how the reader of a page reaches a job."""

from __future__ import annotations

from typing import Any

from django import template

from workers.access.ssh import entry
from workers.core.models import Job

register = template.Library()


@register.simple_tag(takes_context=True)
def ssh_entry(context: dict[str, Any], job: Job) -> entry.Entry:
    """`{% ssh_entry job as entry %}`: host, command and configuration, by the address of this page."""
    return entry.for_job(job, reached_as=context["request"].get_host())
