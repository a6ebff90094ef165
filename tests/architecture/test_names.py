"""Modules, functions and variables are named by terms of the field; other names that are left may only become less."""

import re

from tests.architecture.code import APPS, ROOT, modules, text

#: Gerunds, participles and determiners that name no subject.
UNCLEAR_MODULES = re.compile(
    r"^(telling|trying|trier|holding|keeping|kept|asked|asking|told|said|each|other|parts?|ways?|places|known|words|"
    r"showing|drawn|judged|judging|bringing|mending|looking|looks|lasting|doubts|beginning|begin|arranging|sending|"
    r"deciding|nesting|applying|firing|acts?|giving|given|signs|life|trail|things?|one|missing|opening|closing|readying|"
    r"sleeping|parting|filling|copying|exchanging|learning|publishing|withdrawing|swapping|launching|explicit|additional|"
    r"completing|drawing|comparing|slicing|describing|composing|fitting|answering|named|still|put|wire|weighing)$"
)
#: Names that running programs and their own code know.
MODULES_LEFT = {
    "training/presets/fitting.py",
    "training/presets/keeping.py",
    "training/presets/looks.py",
}
FUNCTION = re.compile(
    r"^\s*(?:async )?def _?(?:of|told|tell|said|say|ask|asked|look|begin|keep|kept|put|whole|give|given|take|found|"
    r"bring|known|seen|fill)\(",
    re.MULTILINE,
)
VARIABLE = re.compile(r"^\s*(?:found|said|told|asked|given|known|seen|kept|one|words)(?::[^=\n]+)? = ", re.MULTILINE)
FUNCTIONS_LEFT, VARIABLES_LEFT = 483, 1989


def count(pattern: re.Pattern[str]) -> int:
    return sum(len(pattern.findall(text(path))) for path in modules("aiplatform", *APPS))


def test_modules_are_named_by_nouns():
    unclear = {
        path.relative_to(ROOT).as_posix()
        for path in modules("aiplatform", *APPS)
        if UNCLEAR_MODULES.match(path.parent.name if path.name == "__init__.py" else path.stem)
    }

    assert unclear == MODULES_LEFT


def test_functions_with_unclear_names_become_less():
    assert count(FUNCTION) <= FUNCTIONS_LEFT, "Name a new function by verb and noun."


def test_variables_with_unclear_names_become_less():
    assert count(VARIABLE) <= VARIABLES_LEFT, "Name a new variable by the thing that it is."
