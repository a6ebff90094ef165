"""`Idempotency-Key`: a request that creates work and is sent twice creates it once.

The caller invents a key for one intention. The first answer is kept for a day and given again for the
same key and body; the same key with another body is a mistake and refused.

The answer is written in the transaction that does the work, so a process that dies leaves both or neither. Whoever
asks next finds the answer, or that the process is gone, and does the work himself.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any

from django.apps import apps
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.http import QueryDict
from django.utils.timezone import now
from django.utils.translation import gettext as _
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.encoders import JSONEncoder

from aiplatform.lib.claims import Claim, Claims
from aiplatform.lib.errors import DomainError, Invalid

RETENTION = timedelta(days=1)
#: A request of another machine this old that never answered has died; if not, it finds its claim lost and is undone.
CLAIMS = Claims(ttl=timedelta(seconds=30), epoch="tries", ends_with_process=True)
_KEY = re.compile(r"[\x21-\x7e]{8,100}\Z")

Method = Callable[..., Response]


class KeyReused(DomainError, code="idempotency_key_reused", status=422): ...


class StillWorking(DomainError, code="idempotency_in_progress", status=409): ...


def once(method: Method) -> Method:
    """Decorate a viewset's creating action so that it honours `Idempotency-Key`, and make it one transaction.

    Only answers below 400 are kept: a refused request may be corrected and sent again with its key.

    Raises:
        KeyReused: the key came before with another body or for another route.
        StillWorking: the first request with this key has not answered yet.
    """

    @wraps(method)
    def wrapper(self: Any, request: Request, *args: Any, **kwargs: Any) -> Response:
        with transaction.atomic():
            return store_response(request, method(self, request, *args, **kwargs))

    return _honouring(wrapper)


def once_in_parts(method: Method) -> Method:
    """Decorate an action that works for long before its transaction, in which it calls `store_response`.

    An action that may run twice without harm need not call it.
    """

    @wraps(method)
    def parts(self: Any, request: Request, *args: Any, **kwargs: Any) -> Response:
        response = method(self, request, *args, **kwargs)
        return response if getattr(request, "idempotency_kept", False) else store_response(request, response)

    return _honouring(parts)


def store_response(request: Request, response: Response) -> Response:
    """Store the answer of a request with an `Idempotency-Key`, and return it; part of the running transaction.

    Raises:
        StillWorking: another process took the request over; what the transaction wrote must be undone.
    """
    claim: Claim | None = getattr(request, "idempotency_claim", None)
    if claim is None or response.status_code >= 400:
        return response
    body = json.loads(json.dumps(response.data, cls=JSONEncoder))
    if not claim.release(status=response.status_code, body=body):
        raise StillWorking(_("Another request with this Idempotency-Key is in progress."))
    request.idempotency_kept = True  # type: ignore[attr-defined]  # travels with the request
    return response


def _honouring(method: Method) -> Method:
    @wraps(method)
    def wrapper(self: Any, request: Request, *args: Any, **kwargs: Any) -> Response:
        key = request.headers.get("Idempotency-Key")
        if key is None:
            return method(self, request, *args, **kwargs)
        if not _KEY.match(key):
            raise Invalid(_("Idempotency-Key must have 8 to 100 printable characters without spaces."))
        digest = _digest(request)
        user: Any = request.user
        table = apps.get_model("accounts", "IdempotencyRecord")._default_manager
        table.filter(created_at__lt=now() - RETENTION).delete()
        row, _is_new = table.get_or_create(user=user, key=key, defaults={"digest": digest})
        if row.digest != digest:
            raise KeyReused(_("This Idempotency-Key was already used for another request. Use a new key."))
        claim = CLAIMS.acquire(table.filter(pk=row.pk, status=0))
        if claim is None:
            return _again(table.filter(pk=row.pk).first())
        request.idempotency_claim = claim  # type: ignore[attr-defined]  # travels with the request
        try:
            response = method(self, request, *args, **kwargs)
        except BaseException:
            claim.delete()
            raise
        if response.status_code >= 400:
            claim.delete()
        return response

    return wrapper


def _again(row: Any) -> Response:
    """Return the stored answer to a request whose key is known."""
    if row is None or not row.status:
        raise StillWorking(_("The first request with this Idempotency-Key is still in progress."))
    return Response(row.body, status=row.status, headers={"Idempotency-Replayed": "true"})


def _digest(request: Request) -> str:
    """Hash method, path and body of a request; files count by name and size."""
    data = request.data
    if isinstance(data, QueryDict):
        body: Any = sorted((name, [_plain(value) for value in values]) for name, values in data.lists())
    else:
        body = data
    text = json.dumps([request.method, request.path, body], sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _plain(value: Any) -> str:
    return f"{value.name}:{value.size}" if isinstance(value, UploadedFile) else str(value)
