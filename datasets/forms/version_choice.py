"""A choice among dataset versions in forms."""

from __future__ import annotations

from aiplatform.lib.row_choices import RowChoice


class DatasetVersionChoice(RowChoice):
    """A choice of one version, by its name."""

    columns = ("dataset__name", "number")

    def text_of(self, name: str, number: int) -> str:
        return f"{name} v{number}"  # as str() of a version
