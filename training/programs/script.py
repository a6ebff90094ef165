"""The text of a command: as it is kept, shown, named and refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from django.utils.translation import gettext as _

from aiplatform.lib import secret_names, shell_words, titles
from aiplatform.lib.errors import Invalid

MAX_LENGTH = 65_536  # characters
MAX_NAME_LENGTH = 40  # characters of a name made of it


def normalised(text: str) -> str:
    """The text with the line ends that a shell knows; browsers send those of DOS."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def check(text: str, *, field: str = "command") -> None:
    """Refuse a command that cannot be run.

    Raises:
        Invalid: nothing at all, a NUL, too long, or a hidden secret that was copied with it.
    """
    text = normalised(text)
    if not text:
        raise Invalid(_("Enter a command, for example python train.py."), field=field)
    if "\0" in text:
        raise Invalid(_("A command must not contain a NUL character."), field=field)
    if len(text) > MAX_LENGTH:
        raise Invalid(
            _("A command can have at most %(most)s characters. Put a longer script into the code.")
            % {"most": MAX_LENGTH},
            field=field,
        )
    check_whole(text, field=field)


def check_whole(text: str, *, field: str) -> None:
    """Refuse a text that contains a masked secret, as pages show it: no program could use it.

    Raises:
        Invalid: it holds the mask.
    """
    if secret_names.MASK in text:
        message = _("%(mask)s is a placeholder for a hidden secret. Enter the secret value here or remove this entry.")
        raise Invalid(message % {"mask": secret_names.MASK}, field=field)


def name_of(text: str) -> str:
    """Return a name made of the first line: its program and its file, such as python_train.py."""
    lines = [line.strip() for line in normalised(text).splitlines()]
    first = next((line for line in lines if line and not line.startswith("#")), "")
    hidden = set(secrets_in(first))
    shown_words = [word for word in words(first) if not word.startswith("-") and "=" not in word and word not in hidden]
    plain = [PurePosixPath(word).name for word in shown_words]
    return titles.derive_name(*plain[:2], room=MAX_NAME_LENGTH) if any(plain) else "command"


def secrets_in(text: str) -> list[str]:
    """Values whose names say that they are secret: `--api-key VALUE`, `TOKEN=VALUE`."""
    return secret_names.find_secrets_in_args(words(text))


def shown(text: str) -> str:
    """The text as pages and the API show it."""
    return secret_names.mask_text(text, secrets_in(text))


def filled(text: str, places: Mapping[str, str]) -> list[str]:
    """Split run parameters like a shell, and replace `{name}` by values.

    Raises:
        ValueError: an open quote, which whoever took the text has refused.
    """
    args = shell_words.split(text)
    for name, value in places.items():
        args = [word.replace(f"{{{name}}}", value) for word in args]
    return args


def words(text: str) -> list[str]:
    """Split it as a shell would, roughly where a quotation mark is open."""
    try:
        return shell_words.split(text)
    except ValueError:
        return text.split()
