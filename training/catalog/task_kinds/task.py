"""What trainings need to know about a task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datasets.models import DatasetVersion


@dataclass(frozen=True)
class Task:
    """What a model can learn to do.

    Args:
        name: in rows, in model.json and in the API; at most 15 characters.
        label: for people, translated lazily.
        icon: of our own set, see /styleguide/.
        data: what the images of a dataset version carry that a model learns from: SHAPES, CLASSES.
        needs: the annotations that it learns from, as a noun phrase, for one line of a form.
        refusal: the sentence for a version that carries something else; may use %(preset)s, %(version)s and %(labels)s.
        preset: the name of the one a training takes when nobody chose.
        from_boxes: what a form notes where a version has boxes only; "" where boxes are what it learns from.
        carries: reads from a version's files whether it has what this task needs beyond its data; asked of one version
            at a time, when somebody chose the task. None: the data are enough.
        figure: the one a list shows and sorts by, as the program names it, and its word; empty where none is telling.
    """

    name: str
    label: Any
    icon: str
    data: tuple[str, ...]
    refusal: Any
    preset: str
    needs: Any = ""
    from_boxes: Any = ""
    figure: tuple[str, Any] = ("", "")
    carries: Callable[[DatasetVersion], bool] | None = None

    def accepts(self, version: DatasetVersion) -> bool:
        """Whether a model can learn this from an annotated version."""
        return version.task in self.data

    def can_learn(self, version: DatasetVersion) -> bool:
        """Whether it does so from this version: `accepts`, and a look into its files where that takes one."""
        return self.accepts(version) and (self.carries is None or self.carries(version))
