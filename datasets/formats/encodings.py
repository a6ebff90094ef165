"""Decode text files of any encoding: byte order mark, declaration, UTF-8, then detection. No Django, no I/O.

Detection ranks a few encodings by the disorder that charset-normalizer finds in the decoded text, plus the share of
characters that are rare in that encoding: the library alone cannot tell East Asian encodings apart in a list of three
names. The standards order their tables by frequency of use (GB/T 2312, Big5 and JIS X 0208 level 1), so a lead byte
says whether a character is common.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass

from charset_normalizer import from_bytes

from aiplatform.lib.wording import Worded, message

MAX_DETECTION_BYTES = 64 << 10
MAX_DISORDER = 0.3  # of a text that is taken at all
#: Where no encoding keeps to that: names of rare characters. The choice is uncertain then.
MAX_RARE_DISORDER, MAX_RARE_CHAOS = 0.6, 0.1
LONG_WORD = 2  # letters; a shorter word may be accented throughout
_WORD = re.compile(r"[^\W\d_]+")
MIN_MARGIN = 0.15  # to the next encoding, below which the choice is uncertain
#: UTF-32 before UTF-16: its mark begins with the mark of UTF-16.
_MARKS = [
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"),
]  # fmt: skip
_LATIN = set("àâäáãåæçéèêëíìîïñóòôöõøœßúùûüýÿÀÂÄÁÃÅÆÇÉÈÊËÍÌÎÏÑÓÒÔÖÕØŒÚÙÛÜÝ°²³µ€£§–—‘’“”«»")


@dataclass(frozen=True, slots=True)
class Decoded:
    """A text and how it was read.

    Args:
        encoding: a name Python and IANA know.
        alternatives: other encodings that fit nearly as well; empty where the choice is certain.
    """

    text: str
    encoding: str = "utf-8"
    alternatives: tuple[str, ...] = ()


class NotText(Worded):
    """The bytes are not text in any encoding that is tried."""


#: Of equal scores the first is taken.
DETECTED = ("gb18030", "cp932", "big5", "euc_kr", "cp1252", "cp1251")


#: Python calls these text encodings; no file is written in one, and decoding Punycode takes quadratic time.
_NO_FILE_ENCODINGS = {"punycode", "idna", "unicode_escape", "raw_unicode_escape", "undefined", "mbcs", "oem"}


def is_encoding(name: str) -> bool:
    """Whether a text file may be in an encoding of this name."""
    try:
        info = codecs.lookup(name)
    except (LookupError, ValueError):
        return False
    return info._is_text_encoding and info.name.replace("-", "_") not in _NO_FILE_ENCODINGS


def decode(data: bytes, *, declared: str = "", chosen: str = "", context: bytes = b"") -> Decoded:
    """Decode `data`.

    Args:
        declared: encoding that the file itself names (XML).
        chosen: encoding that a user chose for all files that are not UTF-8; no detection then.
        context: further bytes in the same unknown encoding, which make detection more certain.

    Raises:
        NotText: binary data, or text in an encoding that is not recognized.
    """
    for mark, name in _MARKS:
        if data.startswith(mark):
            return Decoded(_strict(data[len(mark) :], name), name)
    for name in filter(is_encoding, filter(None, (declared, _wide(data), "utf-8", chosen))):
        try:
            return Decoded(data.decode(name), codecs.lookup(name).name)
        except (UnicodeDecodeError, LookupError):
            continue
    if chosen or b"\0" in data:
        raise NotText(message("report.not_text"))
    ranked = _rank(data[:MAX_DETECTION_BYTES] + b"\n" + context[:MAX_DETECTION_BYTES])
    for at, (score, name) in enumerate(ranked):
        try:
            text = data.decode(name)
        except UnicodeDecodeError:
            continue
        margin = MIN_MARGIN if score <= MAX_DISORDER else 1
        close = [other for rank, other in ranked[at + 1 :] if rank - score < margin and _differs(data, other, text)]
        return Decoded(text, name, tuple(close))
    raise NotText(message("report.not_text"))


def _strict(data: bytes, name: str) -> str:
    try:
        return data.decode(name)
    except UnicodeDecodeError:
        raise NotText(message("report.not_text")) from None


def _wide(data: bytes) -> str:
    """UTF-16 without a byte order mark: every other byte of ASCII text is NUL."""
    sample = data[:1024]
    if len(sample) < 4 or len(sample) % 2:
        return ""
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    half = len(sample) // 2
    name = "utf-16-le" if odd > half * 0.4 and not even else "utf-16-be" if even > half * 0.4 and not odd else ""
    text = sample.decode(name, "replace") if name else ""
    return name if sum(char.isprintable() or char.isspace() for char in text) >= 0.9 * len(text) else ""


def _differs(data: bytes, encoding: str, text: str) -> bool:
    try:
        return data.decode(encoding) != text
    except UnicodeDecodeError:
        return False


def _rank(data: bytes) -> list[tuple[float, str]]:
    """Return the encodings that fit, the best first, with disorder + share of rare characters."""
    matches = from_bytes(data, cp_isolation=list(DETECTED), threshold=MAX_DISORDER)
    scores = {match.encoding: match.chaos + _RARITY[match.encoding](str(match)) for match in matches}
    ranked = sorted((score, DETECTED.index(name), name) for name, score in scores.items())
    fair = [(score, name) for score, _order, name in ranked if score <= MAX_DISORDER]
    orderly = {match.encoding for match in matches if match.chaos <= MAX_RARE_CHAOS}
    return fair or [(score, name) for score, _o, name in ranked if score <= MAX_RARE_DISORDER and name in orderly]


def _leads(encoding: str, first: int, last: int) -> Callable[[str], float]:
    """The share of characters whose lead byte is outside `first` … `last`."""

    return lambda text: _share(text, lambda char: not first <= char.encode(encoding, "replace")[0] <= last)


def _rare_japanese(text: str) -> float:
    """The share that is neither full-width kana nor kanji of level 1."""
    return _share(
        text,
        lambda char: not ("\u3040" <= char <= "\u30ff" or 0x88 <= char.encode("cp932", "replace")[0] <= 0x97),
    )


def _foreign_words(text: str) -> list[str]:
    return [word for word in _WORD.findall(text) if not word.isascii()]


def _rare_latin(text: str) -> float:
    """The share of words that have an unusual letter, or no unaccented one although they are long."""
    foreign = _foreign_words(text)
    usual = [word for word in foreign if all(char.isascii() or char in _LATIN for char in word)]
    fair = sum(len(word) < LONG_WORD or any(map(str.isascii, word)) for word in usual)
    return max(1 - fair / max(1, len(foreign)), _share(text, lambda char: char not in _LATIN))


def _rare_cyrillic(text: str) -> float:
    """The share of words with a foreign character that are not wholly Cyrillic, or mix cases as no word does."""
    foreign = _foreign_words(text)
    cyrillic = sum(all("\u0400" <= char <= "\u045f" for char in word) for word in foreign if _has_usual_case(word))
    rare = _share(text, lambda char: char.isalpha() and not "\u0400" <= char <= "\u045f")
    return max(1 - cyrillic / max(1, len(foreign)), rare)


def _has_usual_case(word: str) -> bool:
    return word.islower() or word.isupper() or word.istitle()


def _share(text: str, rare: Callable[[str], bool]) -> float:
    foreign = [char for char in text if ord(char) > 0x7F]
    return sum(map(rare, foreign)) / max(1, len(foreign))


#: Encoding → share of characters of a decoded text that are rare in it.
_RARITY: dict[str, Callable[[str], float]] = {
    "gb18030": _leads("gb18030", 0xB0, 0xD7),
    "cp932": _rare_japanese,
    "big5": _leads("big5", 0xA4, 0xC6),
    "euc_kr": _leads("euc_kr", 0xB0, 0xC8),
    "cp1252": _rare_latin,
    "cp1251": _rare_cyrillic,
}
