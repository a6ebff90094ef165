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
    """The one home of a user; counts as one if it is not empty."""

    key = "home"
    label: Any = _("Home folders")

    def count(self, user: User) -> int:
        """Return 1 if the home is not empty."""
        try:
            with trees.opened(homes.path_of(user)) as home:
                return int(next(trees.entries(home), None) is not None)
        except OSError:
            return 0

    def transfer(self, giver: User, taker: User) -> int:
        """Move the home into the taker's after the transaction."""
        count = self.count(giver)
        if count:
            transaction.on_commit(partial(changes.hand_over, giver, taker))
        return count
