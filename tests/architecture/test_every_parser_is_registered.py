"""Whoever parses foreign bytes is measured: tests/growth/registry.py, or tests/growth/exempt.py with a reason."""

import ast

from tests.architecture.code import APPS, modules_with, tree
from tests.growth import registry
from tests.growth.exempt import EXEMPT
from tests.growth.patterns import module_name

#: module or class → functions that parse; None: all of them.
PARSING = {
    "ast": {"parse", "literal_eval"},
    "configparser": None,
    "csv": {"reader", "DictReader"},
    "difflib": None,
    "ElementTree": {"fromstring", "parse", "iterparse", "XMLParser", "XMLPullParser"},
    "Image": {"open"},
    "json": {"load", "loads"},
    "plistlib": None,
    "shlex": {"split", "shlex"},
    "tarfile": {"open"},
    "tomllib": None,
    "yaml": {"load", "load_all", "safe_load", "safe_load_all", "parse", "compose", "compose_all", "scan"},
    "zipfile": {"ZipFile"},
}


def parsing_modules() -> set[str]:
    found = set()
    for path in modules_with(rf"\b({'|'.join(PARSING)})\.", "aiplatform", *APPS):
        for node in ast.walk(tree(path)):
            function = getattr(node, "func", None)
            if not isinstance(node, ast.Call) or not isinstance(function, ast.Attribute):
                continue
            owner = function.value
            name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
            if name in PARSING and function.attr in (PARSING[name] or {function.attr}):
                found.add(module_name(path))
    return found


def registered() -> set[str]:
    return {module for parser in registry.load().values() for module in parser.modules}


def exemption(module: str) -> str:
    """Return the longest prefix that exempts a module, "" where there is none."""
    matching = [prefix for prefix in EXEMPT if module == prefix or module.startswith(f"{prefix}.")]
    return max(matching, key=len, default="")


def test_module_that_parses_is_registered_or_exempt():
    unknown = {module for module in parsing_modules() - registered() if not exemption(module)}

    assert unknown == set(), "Add them to tests/growth/parsers_*.py with their worst inputs."


def test_exemptions_are_used():
    used = {exemption(module) for module in parsing_modules() - registered()}

    assert EXEMPT.keys() - used == set()


def test_registered_modules_exist():
    modules = {module_name(path) for path in modules_with(".", "aiplatform", *APPS)}

    assert registered() - modules == set()
