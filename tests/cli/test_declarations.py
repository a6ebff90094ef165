"""Declared verbs fit the OpenAPI description: route, fields, columns and messages."""

from __future__ import annotations

import re
import string
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from drf_spectacular.generators import SchemaGenerator

from aiplatform.cli import client_files
from aiplatform.client import nouns
from aiplatform.client.commands import completion
from aiplatform.client.output import Formatted
from aiplatform.client.verbs import Verb

#: Responses with keys that the description of the API does not state.
UNDESCRIBED = {"nodes events", "nodes token", "people add"}
DECLARED = [(words, verb) for words, verb in nouns.all_verbs() if verb.run is None]


@pytest.fixture(scope="module")
def description() -> Mapping[str, Any]:
    return SchemaGenerator().get_schema(request=None, public=True)


def operation(description: Mapping[str, Any], verb: Verb) -> Mapping[str, Any] | None:
    """The operation of a verb; names of path parameters may differ."""
    method, route = verb.request
    pattern = re.compile(re.sub(r"\{\w+\}", r"[^/]+", f"/api/v1/{route}"))
    plain = re.sub(r"\{\w+\}", "{}", f"/api/v1/{route}")
    fitting = [path for path in description["paths"] if pattern.fullmatch(path)]
    exact = [path for path in fitting if re.sub(r"\{\w+\}", "{}", path) == plain]
    return description["paths"][exact[0]].get(method.lower()) if exact else None


def properties(description: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Properties of an object, or of the rows of a list; None where the schema leaves them open."""
    while "$ref" in schema or "allOf" in schema:
        if "$ref" in schema:
            schema = description["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
        else:
            schema = schema["allOf"][0]
    if schema.get("type") == "array":
        return properties(description, schema["items"])
    if "results" in schema.get("properties", {}):
        return properties(description, schema["properties"]["results"])
    if "oneOf" in schema:
        return None
    return schema.get("properties")


def response(description: Mapping[str, Any], verb: Verb) -> Mapping[str, Any] | None:
    described = operation(description, verb) or {}
    answers = (answer for code, answer in described.get("responses", {}).items() if code.startswith("2"))
    for answer in answers:
        for kind, content in answer.get("content", {}).items():
            if "json" in kind:
                return properties(description, content["schema"])
    return None


def sent(verb: Verb) -> Iterator[str]:
    """Fields of the query or the body."""
    yield from (item.field for item in verb.arguments if item.field not in {"", "*", *verb.parameters})
    yield from () if callable(verb.send) else verb.send or {}


def printed(verb: Verb) -> Iterator[str]:
    """Keys of the response that columns and messages read, by their first step."""
    for _heading, source in [*(verb.table or ()), *(verb.record or ())]:
        path = source.path if isinstance(source, Formatted) else source if isinstance(source, str) else ""
        yield path.partition(".")[0]
    templates = [template for template in (verb.done, verb.wait_for) if isinstance(template, str)]
    for template in templates:
        for _, name, _, _ in string.Formatter().parse(template):
            yield from re.findall(r"^row\[(\w+)\]$", name or "")
    yield verb.prints


def test_declared_verbs_are_most_of_all():
    assert len(DECLARED) > 150


@pytest.mark.parametrize(("words", "verb"), DECLARED, ids=[words for words, _ in DECLARED])
def test_declared_verb_fits_the_description_of_the_api(description, words, verb):
    described = operation(description, verb)

    assert described is not None, f"{verb.request} is no operation"
    if verb.request[0] in ("GET", "DELETE"):
        known = {parameter["name"] for parameter in described.get("parameters", ()) if parameter["in"] == "query"}
    else:
        content = described.get("requestBody", {}).get("content", {})
        known = set(properties(description, content["application/json"]["schema"]) or ()) if content else set()
    assert set(sent(verb)) <= known
    keys = None if words in UNDESCRIBED else response(description, verb)
    if keys is not None and not verb.rows:
        assert set(printed(verb)) - {""} <= set(keys)
    if verb.rows and keys is not None:
        assert verb.rows in keys


@pytest.mark.parametrize(("words", "verb"), DECLARED, ids=[words for words, _ in DECLARED])
def test_declared_verb_fills_its_route_and_prints_something(words, verb):
    assert verb.parameters <= {item.field for item in verb.arguments}
    assert (
        verb.done
        or verb.prints
        or verb.finish
        or verb.show
        or verb.file
        or verb.table is not None
        or verb.record is not None
    )
    assert not verb.confirm or any(item.name == "yes" for item in verb.arguments)


def test_verbs_need_nothing_but_the_standard_library():
    code = (
        "import sys; from aiplatform.client import nouns;"
        "assert len(list(nouns.all_verbs())) > 250;"
        "bad = {m.split('.')[0] for m in sys.modules} & {'django', 'rest_framework', 'celery', 'torch'};"
        "sys.exit(repr(bad) if bad else 0)"
    )

    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


def test_help_imports_only_the_module_of_the_noun():
    code = (
        "import sys; from aiplatform.client.main import main; main(['edge', '--help']);"
        "sys.exit('aiplatform.client.commands.pipelines' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert "rollback" in done.stdout


def test_client_in_one_file_loads_all_verbs(tmp_path):
    [file, _wheel] = client_files.write(tmp_path)
    code = f"import sys; sys.path.insert(0, {str(file)!r}); from aip_client import nouns; len(list(nouns.all_verbs()))"

    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


def test_commands_that_texts_of_the_client_name_exist():
    commands = {" ".join(words.split()[:2]) for words, _verb in nouns.all_verbs()} | {"api get"}
    commands |= {f"completion {word}" for word in (*completion.SHELLS, completion.WORDS)}
    named = {
        (path.name, command)
        for path in sorted(Path(nouns.__file__).parent.rglob("*.py"))
        for command in re.findall(r"\baip ([a-z]+ [a-z]+(?:-[a-z]+)*)(?=[\s`.,;\"{])", path.read_text())
    }

    assert len(named) > 40
    assert [(name, command) for name, command in sorted(named) if command not in commands] == []
