"""Names inside archives: decode them and make them safe for the disk."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from aiplatform.lib.wording import Worded, message

MAX_NAME_BYTES = 200
MAX_PATH_BYTES = 1000
MAX_DEPTH = 32
_DRIVE = re.compile(r"[A-Za-z]:")
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)", re.IGNORECASE)
_JUNK = {"__macosx", ".ds_store", "thumbs.db", "desktop.ini", ".git", ".svn"}


def decode_all(names: Sequence[tuple[bytes, str | None, bool]]) -> list[str]:
    """Decode all names of one archive with the same encoding.

    Args:
        names: (raw bytes, the text where the archive states it, whether a DOS or Windows tool wrote it).

    Archives of Chinese Windows carry GBK and of Japanese Windows Shift-JIS without saying so; most carry UTF-8. One
    archive comes from one computer, so the names are judged together: a single short name may be valid as both.
    """
    unknown = [raw for raw, text, _dos in names if text is None and not raw.isascii()]
    encoding = "utf-8"
    if unknown:
        dos = all(dos for raw, text, dos in names if text is None and not raw.isascii())
        encoding = _guess(unknown, dos=dos)
    return [text if text is not None else raw.decode(encoding, "replace") for raw, text, _dos in names]


def _guess(raw: list[bytes], *, dos: bool) -> str:
    as_utf8 = _all_decode(raw, "utf-8")
    as_gbk = _all_decode(raw, "gb18030")
    if as_utf8 is not None:
        looks_latin = all(ord(char) < 0x800 for char in as_utf8)
        if dos and looks_latin and as_gbk and all(_is_chinese(char) for char in as_gbk if ord(char) > 127):
            return "gb18030"  # "联通" in GBK is valid UTF-8 by accident
        return "utf-8"
    if _all_decode(raw, "gb2312") is None:  # names of everyday Chinese are all in it, and Japanese ones are not
        japanese = _all_decode(raw, "cp932")
        if japanese is not None and not any("\uff61" <= char <= "\uff9f" for char in japanese):  # narrow katakana: GBK
            return "cp932"
    return "gb18030" if as_gbk is not None else "cp437"


def _all_decode(raw: list[bytes], encoding: str) -> str | None:
    try:
        return "".join(name.decode(encoding) for name in raw)
    except UnicodeDecodeError:
        return None


def _is_chinese(char: str) -> bool:
    return "\u3000" <= char <= "\u9fff" or "\uff00" <= char <= "\uffef"


def safe_parts(name: str) -> tuple[str, ...]:
    """The parts under which `name` may be stored, made harmless where they are only awkward.

    Raises:
        Worded: the name points elsewhere; says how.
    """
    if "\0" in name:
        raise Worded(message("archive.name_nul"))
    if "\\" in name:
        raise Worded(message("archive.name_backslash"))
    if name.startswith("/"):
        raise Worded(message("archive.name_absolute"))
    if _DRIVE.match(name):
        raise Worded(message("archive.name_drive"))
    parts = [part for part in name.split("/") if part not in {"", "."}]
    if ".." in parts:
        raise Worded(message("archive.name_leaves"))
    if len(parts) > MAX_DEPTH:
        raise Worded(message("archive.name_deep", most=MAX_DEPTH))
    safe = tuple(safe_name(part) for part in parts)
    if len("/".join(safe).encode()) > MAX_PATH_BYTES:
        raise Worded(message("archive.name_long", most=MAX_PATH_BYTES))
    return safe


def safe_name(part: str) -> str:
    """One file or folder name without control characters, direction marks, leading dashes or reserved words."""
    text = unicodedata.normalize("NFC", part.encode("utf-8", "replace").decode())
    text = "".join("_" if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"} else char for char in text)
    text = text.rstrip(". ").lstrip(" ") or "_"
    if text.startswith("-") or _RESERVED.match(text):
        text = f"_{text}"
    if len(text.encode()) > MAX_NAME_BYTES:
        stem, dot, suffix = text.rpartition(".")
        if not dot or len(suffix) > 10:
            stem, suffix = text, ""
        tail = f"{dot}{suffix}" if suffix else ""
        text = stem.encode()[: MAX_NAME_BYTES - len(tail.encode())].decode("utf-8", "ignore") + tail
    return text


def is_junk(parts: Sequence[str]) -> bool:
    """Whether an entry is litter of an operating system."""
    return any(part.casefold() in _JUNK for part in parts) or parts[-1].startswith("._")
