"""Large-scale mode: a training on data that is there, with every parameter of its preset given.

What runs for days on hundreds of gigabytes should say all of what it does, and not lean on defaults that a later
version of the platform may change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid, Refusals
from training.presets.preset import Param, Preset
from training.runs.parameters import BadParameter
from workers.core.device_kinds import GPU


def check(preset: Preset | None, params: Mapping[str, Any], *, data_comes: bool) -> None:
    """Refuse at once all values that explicit mode does not accept.

    Args:
        preset: None for own code.
        data_comes: the data is yet to be uploaded with the training.

    Raises:
        Invalid: own code, a preset for processors alone, data that has yet to come.
        BadParameter: a parameter that is not given, or empty; one for each.
    """
    refusals = Refusals()
    with refusals:
        if preset is None:
            raise Invalid(_("Explicit mode trains presets. Choose one, or leave the mode."), field="preset")
        if GPU.name not in preset.device_kinds:
            message = _("%(preset)s trains only on CPUs, and explicit mode is for GPUs. Leave this mode.")
            raise Invalid(message % {"preset": _(preset.title)}, field="preset")
    with refusals:
        if data_comes:
            raise Invalid(_("Explicit mode needs an existing dataset. Upload it first."), field="upload")
    for param in preset.parameters if preset else ():
        with refusals:
            if is_missing(param, params.get(param.name)):
                message = _("%(name)s is missing. Explicit mode requires every parameter.")
                raise BadParameter(message % {"name": param.name}, field=f"param_{param.name}", name=param.name)
    refusals.end()


def is_missing(param: Param, value: Any) -> bool:
    """Return whether a parameter has no value; a text may be empty where that is the preset's default."""
    return value is None or (value == "" and not (param.is_free_text and param.default == ""))
