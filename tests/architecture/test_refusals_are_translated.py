"""What a refusal says is in the reader's language: its sentence goes through gettext."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from django.urls import get_resolver

from aiplatform.lib.errors import DomainError
from tests.architecture.code import APPS, TRANSLATING, modules_with, tree, where

#: Exceptions of others whose text people read, the two behind a model file's refusal, and the body of an API's refusal.
ALSO = {"ValidationError", "PermissionDenied", "ParseError", "AuthenticationFailed", "NotAuthenticated", "problem"}
ALSO |= {"RefusedModel", "Damaged"}
#: Programs that run without the platform: they speak English, as logs do.
ALONE = (
    *(
        "aiplatform/cli/",
        "inference/serving/server/",
        "inference/evaluation/evaluator/",
        "inference/video/watcher/",
        "inference/batch/predictor/",
        "training/presets/",
    ),
    "workers/supervisor/",
)


def refusals() -> set[str]:
    """Names of every refusal there is."""
    assert get_resolver().url_patterns  # imports all pages and the API
    found, names = [DomainError], set()
    while found:
        one = found.pop()
        names.add(one.__name__)
        found += one.__subclasses__()
    return names | ALSO


def literals(node: ast.AST) -> Iterator[str]:
    """Texts with words in an expression, but for those that gettext is given."""
    if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in TRANSLATING:
        return
    if isinstance(node, ast.JoinedStr):
        node = ast.Constant("x".join(part.value for part in node.values if isinstance(part, ast.Constant)))
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
        yield node.value
    for child in ast.iter_child_nodes(node):
        yield from literals(child)


def untranslated(parsed: ast.AST, names: set[str]) -> Iterator[int]:
    """Lines that refuse with a plain text."""
    for call in (node for node in ast.walk(parsed) if isinstance(node, ast.Call)):
        if getattr(call.func, "attr", getattr(call.func, "id", "")) in names and any(
            map(any, map(literals, call.args))
        ):
            yield call.lineno


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ('raise Invalid("Not so.")', True),
        ('raise Invalid(f"Not {n} times.")', True),
        ('raise serializers.ValidationError({"path": ["Give a path."]})', True),
        ('raise Invalid(_("Not so."), field="name")', False),
        ('raise Invalid(_("Not %(n)s times.") % {"n": 3})', False),
        ('raise Invalid(" ".join(problems))', False),
        ('raise ValueError("A bug of ours.")', False),
    ],
)
def test_search_tells_plain_texts_from_translated_ones(source, wrong):
    assert bool(list(untranslated(ast.parse(source), refusals()))) is wrong


def test_every_refusal_is_said_through_gettext():
    names = refusals()
    plain = [
        where(path, line)
        for path in modules_with(rf"\b(?:{'|'.join(names)})\(", "aiplatform", *APPS)
        if not where(path, 0).startswith(ALONE)
        for line in untranslated(tree(path), names)
    ]

    assert plain == []
