"""The home as something a person owns: counted, and handed over where an account is deleted."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.db import transaction
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from aiplatform.lib import trees
from datasets.files import changes, homes


class HomeFolder:
    """One home per person; it counts as one where anything lies in it."""

    key = "home"
    label: Any = _("Home folders")

    def count(self, user: User) -> int:
        """1 where something lies in it."""
        try:
            with trees.opened(homes.path_of(user)) as home:
                return int(next(trees.entries(home), None) is not None)
        except OSError:
            return 0

    def give(self, giver: User, taker: User) -> int:
        """Put it into the taker's, once the rest is decided."""
        count = self.count(giver)
        if count:
            transaction.on_commit(partial(changes.hand_over, giver, taker))
        return count
