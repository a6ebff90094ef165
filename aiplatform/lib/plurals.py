"""English plurals of models, which Django makes by appending an “s”."""

from __future__ import annotations

import re

from django.apps import apps
from django.utils.translation import gettext_lazy as _

OWN = {"accounts", "aiplatform", "annotation", "datasets", "inference", "training", "workers"}
#: Last words whose plural follows no rule.
IRREGULAR = {
    "analysis": "analyses",
    "choices": "choices",
    "data": "data",
    "defaults": "defaults",
    "reported": "reported values",
    "series": "series",
    "statistics": "statistics",
}
#: Words of class names that are written in capitals.
CAPITALS = {"api": "API", "ssh": "SSH"}
#: Names and plurals of the models on the admin site, in the words of the interface and in the language of the user.
TRANSLATED = {
    "role": (_("role"), _("roles")),
    "user group": (_("user group"), _("user groups")),
    "API token": (_("API token"), _("API tokens")),
    "one time link": (_("one-time link"), _("one-time links")),
    "audit entry": (_("audit entry"), _("audit entries")),
    "notification": (_("notification"), _("notifications")),
    "delivery": (_("delivery"), _("deliveries")),
    "dataset": (_("dataset"), _("datasets")),
    "dataset version": (_("dataset version"), _("dataset versions")),
    "import": (_("import"), _("imports")),
    "upload": (_("upload"), _("uploads")),
    "shape": (_("shape"), _("shapes")),
    "job": (_("job"), _("jobs")),
    "node": (_("node"), _("nodes")),
    "device": (_("device"), _("devices")),
    "allocation": (_("allocation"), _("allocations")),
    "lease": (_("lease"), _("leases")),
    "time request": (_("time request"), _("time requests")),
    "virtual cluster": (_("virtual cluster"), _("virtual clusters")),
    "alarm": (_("alert"), _("alerts")),
    "alarm rule": (_("alert rule"), _("alert rules")),
    "alarm address": (_("alert recipient"), _("alert recipients")),
    "resource group": (_("resource group"), _("resource groups")),
    "training job": (_("training job"), _("training jobs")),
    "parameter set": (_("parameter set"), _("parameter sets")),
    "code snapshot": (_("code snapshot"), _("code snapshots")),
    "model": (_("model"), _("models")),
    "evaluation": (_("evaluation"), _("evaluations")),
    "conversion": (_("conversion"), _("conversions")),
    "push target": (_("export target"), _("export targets")),
    "push": (_("export"), _("exports")),
    "service": (_("endpoint"), _("endpoints")),
}


def plural(name: str) -> str:
    """Return the plural of a noun phrase: "audit entry" → "audit entries"."""
    head, space, word = name.rpartition(" ")
    if word in IRREGULAR:
        return f"{head}{space}{IRREGULAR[word]}"
    if re.search(r"[^aeiou]y$", word):
        return f"{name[:-1]}ies"
    return f"{name}es" if re.search(r"(s|x|z|ch|sh)$", word) else f"{name}s"


def set_names() -> None:
    """Name all models of the platform that declare no name; called once, when all apps are loaded.

    The names are no part of migrations, which record only what a model declares.
    """
    for model in apps.get_models():
        meta = model._meta
        if model.__module__.partition(".")[0] in OWN and "verbose_name" not in meta.original_attrs:
            name = " ".join(CAPITALS.get(word, word) for word in str(meta.verbose_name).split(" "))
            meta.verbose_name, plural_name = TRANSLATED.get(name, (name, plural(name)))
            if name in TRANSLATED or "verbose_name_plural" not in meta.original_attrs:
                meta.verbose_name_plural = plural_name
