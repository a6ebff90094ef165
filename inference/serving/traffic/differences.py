"""Keep pictures of which the answers of two models differ: what one of them has to learn yet.

Runs in the processes that pass requests on. A shadow's answer is nobody's, so that the picture and what the caller was
told are at hand there.
"""

from __future__ import annotations

import json
import logging
import time

from asgiref.sync import sync_to_async
from django.db import DatabaseError, close_old_connections

from aiplatform.lib.errors import DomainError
from inference.serving.feedback import samples
from inference.serving.feedback.models import ServiceSample
from inference.serving.limits import limits_of
from inference.serving.models import Service

log = logging.getLogger(__name__)
EVERY_S = 2.0  # at most one picture of a service within so many seconds is kept by a process
MAX_REMEMBERED = 10_000
PICTURES = (b"\xff\xd8\xff", b"\x89PNG", b"RIFF", b"BM", b"GIF8", b"II*\0", b"MM\0*")  # how their files begin


async def sample_disagreement(service: Service, agreed: float, request_body: bytes, response_body: bytes) -> None:
    """Store an image if the owner wants such samples and the agreement (0..1) is too low.

    Only a request whose whole body is a picture can be kept: others hold several, or none.

    Args:
        request_body: the body of the request.
        response_body: the body of the response that the caller got.
    """
    below = limits_of(service)["keep_differing"] / 100
    if not below or agreed >= below or not request_body.startswith(PICTURES):
        return
    moment = time.monotonic()
    if moment < _kept.get(service.pk, 0.0) + EVERY_S:
        return
    if len(_kept) > MAX_REMEMBERED:
        _kept.clear()
    _kept[service.pk] = moment
    await sync_to_async(store)(service, request_body, response_body)


_kept: dict[int, float] = {}  # when this process last kept a picture of a service


def store(service: Service, picture: bytes, response_body: bytes) -> None:
    """Store an image with the predictions of the service; images that cannot be stored are skipped."""
    close_old_connections()
    try:
        answers = json.loads(response_body)["predictions"]
        samples.store(holder=service, picture=picture, answers=answers, by=None, why=ServiceSample.Why.DIFFERING)
    except (DomainError, ValueError, TypeError, KeyError, OSError, DatabaseError) as reason:
        log.info("service=%s keeps no picture: %s", service.pk, reason)
