"""Texts of messages about batch predictions that rows keep as code and facts."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from aiplatform.lib.wording import Wording

PREDICTION = {
    "gone": Wording(_("The model or the dataset of this batch prediction was deleted.")),
    "draft": Wording(_("Draft by model %(model)s, batch prediction %(name)s")),
}
