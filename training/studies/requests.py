"""The request that a study's trainings are made of: the body of `POST training/jobs/`, kept as JSON and read again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib import sealed, wording
from aiplatform.lib.errors import DomainError, NotAllowed, Refusals
from training.programs import snapshots, variables
from training.programs.request_schemas import body_of
from training.programs.serializers import CODE_FIELDS
from training.runs import drafts, jobs
from training.runs.drafts import TrainingRequest
from training.runs.models import TrainingJob
from training.runs.request_schema import SCHEMA
from training.runs.serializers import TrainingIn
from training.studies.models import Study
from training.studies.space import Value
from workers.jobs import submission

#: What a study says itself, or what is read once when it is made.
OWN = ("name", "secrets", "code", "parameter_set", "parameter_set_version", "parent", "explicit", *CODE_FIELDS)


class BadTraining(DomainError, code="bad_training", status=400, field="training"):
    """The training of a study that cannot be made as it is."""


def parse_training(user: User, body: Mapping[str, Any], *, name: str, sample: Mapping[str, Value]) -> dict[str, Any]:
    """Read and check the training of a new study; return the columns that store it.

    Args:
        body: of `POST training/jobs/`.
        sample: a value for each parameter that is searched, to check the whole with.

    Raises:
        DomainError: all that the training would be refused for.
    """
    plain = {key: value for key, value in body.items() if key not in ("name", "parent", "explicit")}
    twice = [key for key in sample if key in (plain.get("params") or {})]
    refusals = Refusals()
    with refusals:
        if twice:
            message = _("%(names)s cannot be both fixed and searched.")
            raise BadTraining(message % {"names": ", ".join(twice)}, field="space")
    with refusals:
        data = _parsed(user, plain | {"name": f"{name}_0", "params": {**(plain.get("params") or {}), **sample}})
        request = SCHEMA.read(user, data)
        check(user, request)
    refusals.end()
    params = {key: value for key, value in request.params.items() if key not in sample}
    stored = {key: value for key, value in plain.items() if key not in OWN and key != "params"}
    return {
        "request": json.loads(json.dumps(stored, default=str)) | {"params": params, "preset": request.preset},
        "preset": _preset_of(user, request),
        "code": request.code,
        "secrets": sealed.seal(variables.with_stored(user, request.secrets)),
        "secret_names": sorted(request.secrets),
        "version": request.version,
        "version_label": str(request.version or "")[:60],
    }


def _preset_of(user: User, request: TrainingRequest) -> str:
    return drafts.check(user, request).training.preset


def check(user: User, request: TrainingRequest) -> None:
    """Refuse what the trainings of a study would be refused for, and requests for more than one training.

    Raises:
        DomainError: with everything that is wrong.
    """
    refusals = Refusals()
    draft = None
    with refusals:
        draft = drafts.check(user, request)
    with refusals:
        submission.check(user, jobs.KIND, request.following, **drafts.resources_of(user, request))
    with refusals:
        params = draft.training.params if draft else {}
        if params.get("folds") and not params.get("fold"):
            message = _("Each trial is one training job. Set folds to 0, or choose one fold.")
            raise BadTraining(message, field="param_folds")
    with refusals:
        if draft and draft.training.extra.get("show_batch"):
            raise BadTraining(_("-ShowBatch does not train. Remove it."), field="extra")
    refusals.end()


def request_for(study: Study, params: Mapping[str, Value], *, name: str, user: User | None = None) -> TrainingRequest:
    """Return the request of one training of a study; the referenced data or cluster may have been deleted since.

    Args:
        user: for whom; None is its owner.

    Raises:
        DomainError: something that it names is not there for this person.
    """
    who = user or study.owner
    code = study.code
    if code is not None and code.owner_id != who.pk:
        code = snapshots.copy_for(who, code)
    fixed = study.request.get("params", {})
    body = study.request | {"name": name, "params": {**fixed, **params}, "code": code.pk if code else None}
    return SCHEMA.read(who, _parsed(who, body))


def submit(study: Study, params: Mapping[str, Value], *, name: str, user: User | None = None) -> TrainingJob:
    """Queue one training of a study; its secrets go with it as they are kept.

    Raises:
        NotAllowed: this person starts no trainings any more.
        DomainError: see `request_for`, and what `jobs.submit` refuses.
    """
    who = user or study.owner
    if not who.is_active or not who.can(Action.TRAINING_SUBMIT):
        raise NotAllowed(wording.message("training.owner_not_allowed"))
    training = jobs.submit(user=who, request=request_for(study, params, name=name, user=who))
    if study.secrets and who.pk == study.owner_id:
        training.secrets, training.secret_names = study.secrets, study.secret_names
        training.save(update_fields=["secrets", "secret_names"])
    return training


def _parsed(user: User, body: Mapping[str, Any]) -> dict[str, Any]:
    return body_of(TrainingIn, user, body, drafts.check_parts)
