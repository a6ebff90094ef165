"""Fuzzy matching of short texts, for the command palette."""

from __future__ import annotations

MIN_SCORE = 0.4
SEPARATORS = " -_/.·:"


def score(query: str, text: str) -> float:
    """Return how well `query` matches `text`, from 0 (not at all) to 1 (equal), without regard to case.

    A text that contains the query scores higher than one that contains its words in any order, and that higher than
    one that has its characters in this order (a subsequence): "hs" matches "Hyperparameter search".
    """
    wanted, have = query.casefold().strip(), text.casefold()
    if not wanted or not have:
        return 0.0
    if wanted == have:
        return 1.0
    position = have.find(wanted)
    if position >= 0:
        start = 0.95 if position == 0 else 0.88 if have[position - 1] in SEPARATORS else 0.7
        return start - 0.05 * (1 - len(wanted) / len(have))
    tokens = wanted.split()
    if len(tokens) > 1 and all(word in have for word in tokens):
        return 0.65
    return _subsequence_score("".join(tokens), have)


def _subsequence_score(wanted: str, have: str) -> float:
    """Return the score of a subsequence: higher the more of its characters start a word or follow each other."""
    if len(wanted) < 2:
        return 0.0
    best = max((_run_score(wanted, have, start) for start, char in enumerate(have) if char == wanted[0]), default=0.0)
    return best if best >= MIN_SCORE else 0.0


def _run_score(wanted: str, have: str, start: int) -> float:
    """Return the score of the subsequence that begins at `start` and prefers starts of words."""
    good, last = int(_starts_word(have, start)), start
    for char in wanted[1:]:
        positions = [position for position in range(last + 1, len(have)) if have[position] == char]
        if not positions:
            return 0.0
        if positions[0] == last + 1:
            position = positions[0]
        else:
            position = next((position for position in positions if _starts_word(have, position)), positions[0])
        good += position == last + 1 or _starts_word(have, position)
        last = position
    return 0.6 * (good / len(wanted)) ** 2


def _starts_word(text: str, position: int) -> bool:
    return position == 0 or text[position - 1] in SEPARATORS
