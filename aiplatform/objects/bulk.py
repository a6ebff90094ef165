"""Actions on the selected rows of a list: declared here, run by base/selection.js as one API request per row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

OWNED = "row.owner_id == user.pk or user.sees_everything"
OWNED_JOB = "row.job.owner_id == user.pk or user.sees_everything"


@dataclass(frozen=True)
class BulkAction:
    """An action on selected rows.

    A row is refused or accepted by the API, as if it were the only one; `when` and `owned` only spare requests that
    would be refused.

    Args:
        code: names the action in a row's list of possible actions.
        url: path of the API with `0` in place of the key of the row. Of a GET: the page to open, whose parameter
            `parameter` is repeated for each row.
        text: what is lost and what is kept, asked before the action; empty: it runs without a question.
        when: an expression of Django's templates about `row`; empty: the action is always possible.
        owned: an expression that says whether the user may change `row`; empty: it does not matter.
        needs: the permission; empty: none.
        least: number of rows below which the action is disabled.
        same: a template without spaces in its output; the action is disabled for rows of which it differs.
        differ_text: why it is then disabled.
    """

    code: str
    label: str | Promise
    icon: str
    url: str
    method: Literal["POST", "DELETE", "GET"] = "POST"
    text: str | Promise = ""
    when: str = ""
    owned: str = OWNED
    needs: str = ""
    least: int = 1
    parameter: str = ""
    same: str = ""
    differ_text: str | Promise = ""

    @property
    def is_danger(self) -> bool:
        """Whether the action ends or deletes something."""
        return bool(self.text)

    def condition(self) -> str:
        """Source of a template that names the action where it is possible for `row`."""
        source = f"{self.code} {self.code}={self.same} " if self.same else f"{self.code} "
        for expression in (self.when, self.owned):
            if expression:
                source = f"{{% if {expression} %}}{source}{{% endif %}}"
        return source


def stop(url: str, text: str | Promise, **declared: Any) -> BulkAction:
    """Stop the jobs of the selected rows."""
    declared = {"when": "not row.job.is_final", "owned": OWNED_JOB, **declared}
    return BulkAction("stop", _("Stop"), "stop", url, text=text, **declared)


def delete(url: str, text: str | Promise, **declared: Any) -> BulkAction:
    """Delete the selected rows."""
    return BulkAction("delete", _("Delete"), "trash", url, "DELETE", text, **declared)


def compare(url: str, parameter: str, **declared: Any) -> BulkAction:
    """Open the page that compares the selected rows."""
    declared = {"owned": "", "least": 2, **declared}
    return BulkAction("compare", _("Compare"), "compare", url, "GET", parameter=parameter, **declared)


def allowed(actions: Iterable[BulkAction], user: Any) -> list[BulkAction]:
    """Return the actions that the role of `user` allows."""
    return [action for action in actions if not action.needs or user.can(action.needs)]
