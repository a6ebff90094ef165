"""Texts of messages about conversions that rows keep as code and facts."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from aiplatform.lib.wording import Wording

CONVERSION = {"gone": Wording(_("The model or the dataset of this conversion was deleted."))}
