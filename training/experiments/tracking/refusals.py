"""Refusals in the words that MLflow's clients know: an error code, a status, a sentence."""

from __future__ import annotations

from django.utils.translation import gettext as _

from aiplatform.lib.errors import DomainError

#: Refusals of other rooms by their status.
BY_STATUS = {
    400: "INVALID_PARAMETER_VALUE",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "RESOURCE_DOES_NOT_EXIST",
    409: "RESOURCE_CONFLICT",
    413: "INVALID_PARAMETER_VALUE",
    429: "REQUEST_LIMIT_EXCEEDED",
    501: "NOT_IMPLEMENTED",
    507: "RESOURCE_EXHAUSTED",
}


class Unknown(DomainError, code="not_implemented", status=501):
    """A call that the platform does not answer."""


class Stranger(DomainError, code="not_signed_in", status=401):
    """The caller is not authenticated."""


class There(DomainError, code="already_exists", status=400):
    """Something of this name is there already: MLflow answers 400, and its clients look for the code."""


class Missing(DomainError, code="not_found", status=404):
    """Nothing of this id, or nothing for who asks: the sentence is the same."""


class NoSuchId(Missing):
    """No visible object has this id; attempts with ids of others are written to the audit trail."""


def code_of(refusal: DomainError) -> str:
    """MLflow's code of a refusal."""
    if isinstance(refusal, There):
        return "RESOURCE_ALREADY_EXISTS"
    return BY_STATUS.get(refusal.status, "BAD_REQUEST")


def no_run(uid: str) -> NoSuchId:
    """No such run."""
    return NoSuchId(_("Run id %(uid)s not found.") % {"uid": uid[:64]})


def no_experiment(name: str) -> Missing:
    """No such experiment, by id or name."""
    return Missing(_("Experiment %(name)s not found.") % {"name": name[:100]})


def no_model(name: str) -> Missing:
    """No such model, by id or name, or no such version of it."""
    return Missing(_("Model %(name)s not found.") % {"name": name[:250]})
