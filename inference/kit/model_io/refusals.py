"""Refusals of the server: a stable code, an HTTP status, a message."""

from __future__ import annotations

from typing import ClassVar


class Refusal(Exception):
    """The request cannot be served; `retry_after` (whole seconds) when trying again makes sense."""

    status: ClassVar[int] = 400
    code: ClassVar[str] = "bad_request"

    def __init__(self, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.retry_after = retry_after


class BadRequest(Refusal):
    pass


class UnknownModel(Refusal):
    status, code = 404, "unknown_model"


class WrongKey(Refusal):
    status, code = 401, "wrong_key"


class TooSlow(Refusal):
    status, code = 408, "body_too_slow"


class TooLarge(Refusal):
    status, code = 413, "body_too_large"


class AnswerTooLarge(Refusal):
    status, code = 413, "answer_too_large"


class NotAnImage(Refusal):
    status, code = 422, "not_an_image"


class QueueFull(Refusal):
    status, code = 429, "queue_full"


class ModelFailed(Refusal):
    status, code = 500, "model_failed"


class NotReady(Refusal):
    status, code = 503, "not_ready"


class DeadlineExceeded(Refusal):
    status, code = 504, "deadline_exceeded"


class Gone(Refusal):
    """The client closed the connection while waiting; the response is not read."""

    status, code = 499, "client_closed_request"


#: What OpenAI's API calls a refusal of a status, where it is none of the server's faults.
KINDS = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def error(path: str, status: int, code: str, message: str) -> object:
    """What a refusal has under "error": a text in the Open Inference Protocol, else as OpenAI's API has it.

    Args:
        path: behind the address of the service, without a slash before it.
    """
    if path.split("/", maxsplit=1)[0] == "v2":
        return message
    kind = KINDS.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {"message": message, "type": kind, "param": None, "code": code}
