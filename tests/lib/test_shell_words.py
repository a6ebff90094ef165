"""Command lines as words: the same ones as `shlex.split` finds."""

import random
import shlex

from aiplatform.lib import shell_words


def outcome(split, text):
    try:
        return split(text)
    except ValueError:
        return "refused"


def test_words_are_those_of_shlex():
    letters = random.Random(1)
    for _case in range(3000):
        text = "".join(letters.choice("ab '\"\\\n\t#;é") for _letter in range(letters.randint(0, 12)))

        assert outcome(shell_words.split, text) == outcome(shlex.split, text), repr(text)
