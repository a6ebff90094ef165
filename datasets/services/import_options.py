"""What a user decides about data that can be read in several ways. Kept as JSON in the import's row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid, Refusals
from datasets.formats import encodings, mask_pairs, scaling

MAX_MASK_FOLDERS = 1000


@dataclass(frozen=True, slots=True)
class Options:
    """How data is read, and what may be missing.

    Args:
        allow_unlabelled: import images without annotations although annotation files are there.
        encoding: of text files that are not UTF-8; "" detects it.
        sizes: `scaling.SCALE` or `scaling.KEEP`, where all stated sizes differ from the images' by one factor.
        mask_folders: folder → `mask_pairs.MASKS` or `mask_pairs.IMAGES`, where names and content leave it open.
    """

    allow_unlabelled: bool = False
    encoding: str = ""
    sizes: str = ""
    mask_folders: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, row_options: Mapping[str, Any]) -> Options:
        """Options of a row; what another version wrote beyond them is left out."""
        return cls(**{name: value for name, value in row_options.items() if name in cls.__slots__})

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def checked(self) -> Options:
        """The same options.

        Raises:
            Invalid: an unknown encoding, an unknown choice for sizes, or a folder that is neither masks nor images.
        """
        refusals = Refusals()
        with refusals:
            if self.encoding and not encodings.is_encoding(self.encoding):
                raise Invalid(
                    _("Unknown encoding “%(name)s”. Examples: gb18030, shift_jis, cp1252.")
                    % {"name": self.encoding[:40]},
                    field="encoding",
                )
        with refusals:
            wrong = [
                name for name, kind in self.mask_folders.items() if kind not in {mask_pairs.MASKS, mask_pairs.IMAGES}
            ]
            if wrong or len(self.mask_folders) > MAX_MASK_FOLDERS:
                raise Invalid(
                    _("Folder “%(name)s”: choose masks or images.") % {"name": next(iter(wrong), "")[:200]},
                    field="mask_folders",
                )
        with refusals:
            if self.sizes not in {"", scaling.SCALE, scaling.KEEP}:
                raise Invalid(_("Shapes are scaled (scale) or kept as stated (keep)."), field="sizes")
        refusals.end()
        return self
