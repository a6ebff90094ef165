"""English plurals of models, which Django makes by appending an “s”."""

from __future__ import annotations

import re

from django.apps import apps

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
            meta.verbose_name = name
            if "verbose_name_plural" not in meta.original_attrs:
                meta.verbose_name_plural = plural(name)
