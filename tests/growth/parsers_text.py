"""Parsers of texts that users write: requests, pipelines, filters, rules, tables and Markdown."""

from __future__ import annotations

import io

from accounts.services import batches
from aiplatform.lib import archive_names, challenges, line_diff, markdown, parsers, queries, secret_names
from datasets.files import notebooks
from inference.batch import sources
from inference.pipelines import expressions, text_reading, text_writing, values
from inference.registry.formats import declared
from tests.growth.registry import Parser, encoded, numbered, register, repeated
from training.experiments import finding
from training.experiments.tracking import body, filters
from training.programs import request_text, script
from training.runs import custom_networks
from training.studies import space

JSON = {
    "lists": repeated("[", "", ""),
    "tables": repeated('{"a":'),
    "digits": repeated("9"),
    "long numbers": repeated("9" * 4000 + ",", "[", "0]"),
    "decimals": repeated("1", "0."),
    "exponents": repeated("1e999,", "[", "0]"),
    "escapes": repeated("\\u0041", '"', '"'),
    "open text": repeated("a", '"'),
    "keys": numbered('"k{}":1,', "{", '"z":0}'),
    "equal keys": repeated('"k":1,', "{", '"z":0}'),
    "spaces": repeated(" ", "[", "1"),
    "short lists": repeated("[[]],", "[", "0]"),
}
YAML = {
    "flow lists": repeated("["),
    "flow tables": repeated("{a: "),
    "items": repeated("a,", "[", "]"),
    "lines": repeated("- a\n"),
    "keys": numbered("k{}: 1\n"),
    "words": repeated("a "),
    "one word": repeated("a", "a: "),
    "base 60": repeated("1:", "a: ", "1"),
    "base 60 with a point": repeated("1:", "a: ", "1.5"),
    "underscores": repeated("_", "a: 1", "x"),
    "digits": repeated("9", "a: "),
    "decimals": repeated("9", "a: 0."),
    "comments": repeated("#\n"),
    "block": repeated("\n", "a: |\n", "  x"),
    "folded": repeated("  c\n", "a: b\n"),
    "questions": repeated("? "),
    "dashes": repeated("- "),
    "quotes": repeated("\\n", 'a: "', '"'),
    "deep list with items": repeated("a,", "[" * 30),
    "parameters": numbered("{{{{ p{} }}}}\n"),
    "open parameters": repeated("{{ "),
}
WORDS = {"letters": repeated("a"), "quotes": repeated("'a'"), "spaces": repeated(" "), "backslashes": repeated("\\\\"),
         "words": repeated("a "), "open quote": repeated("a", "'"), "secrets": numbered("--token{} v ")}  # fmt: skip
MARKDOWN = {
    "brackets": repeated("["),
    "links": repeated("[a]("),
    "closed links": repeated("[a](b)"),
    "images": repeated("![a]("),
    "stars": repeated("*a_ "),
    "bold": repeated("**a "),
    "mixed emphasis": repeated("*a **b "),
    "underscores": repeated("_a __b_ "),
    "backticks": numbered("`"),
    "code of many lengths": lambda size: "".join("`" * n + " " for n in range(1, int((2 * size) ** 0.5))),
    "quotations": repeated(">"),
    "nested lists": repeated("- "),
    "list items": repeated("- a\n"),
    "angle brackets": repeated("<"),
    "comments": repeated("<!--"),
    "declarations": repeated("<!A "),
    "instructions": repeated("<?"),
    "definitions": numbered("[a{}]: b\n"),
    "references": repeated("[a] ", "[a]: b\n\n"),
    "table": repeated("|a", "|a|b|\n|-|-|\n"),
    "table rows": repeated("|a|b|\n", "|a|b|\n|-|-|\n"),
    "entities": repeated("&a"),
    "autolinks": repeated("http://a"),
    "escapes": repeated("\\"),
    "fences": repeated("```\n"),
    "titles": repeated('[a](b "'),
    "tildes": repeated("~~a ~"),
    "deep indentation": lambda size: "\n".join(" " * n + "- a" for n in range(int((2 * size) ** 0.5))),
}
CSV = {"cells": repeated(","), "rows": repeated("a\n", "username\n"), "quotes": repeated('"'),
       "open cell": repeated("a", 'username\n"')}  # fmt: skip
RULES = {"parentheses": repeated("("), "numbers": repeated("1"), "sum": repeated("1+", "", "1"),
         "names": repeated("a."),
         "signs": repeated("-"), "text": repeated("a", '"'), "spaces": repeated(" "), "not": repeated("not "),
         "odd": repeated("1", "", "_"), "and": repeated("a = 1 and ", "", "b")}  # fmt: skip

register(
    Parser(
        "JSON of the API", lambda text: parsers.check(_json(text)), JSON, 2 << 20, ("aiplatform.lib.parsers",), "[1]"
    )
)
register(
    Parser(
        "JSON of MLflow calls",
        body._parsed,
        encoded(JSON),
        body.MAX_BYTES,
        ("training.experiments.tracking.body",),
        b"{}",
    )
)
register(
    Parser(
        "pipeline YAML",
        text_reading.documents,
        YAML,
        text_reading.MAX_BYTES,
        ("inference.pipelines.text_reading",),
        "a: 1",
    )
)
register(
    Parser(
        "request YAML", request_text.read, YAML, request_text.MAX_LENGTH, ("training.programs.request_text",), "a: 1"
    )
)
register(
    Parser(
        "pipeline text writer",
        text_writing.scalar,
        {"words": repeated("a "), "colons": repeated("a:"), "quotes": repeated("'"), "lines": repeated("a\n")},
        text_reading.MAX_BYTES,
        ("inference.pipelines.text_writing",),
        "a",
    )
)
register(
    Parser(
        "references in pipelines",
        values.references,
        {"open": repeated("${"), "closed": repeated("${a}"), "dollars": repeated("$"), "long": repeated("a", "${")},
        text_reading.MAX_BYTES,
        ("inference.pipelines.values",),
        "${a}",
    )
)
register(
    Parser(
        "pipeline rules",
        expressions.parse,
        RULES,
        expressions.MAX_LENGTH,
        ("inference.pipelines.expressions", "inference.pipelines.rule_parts", "inference.pipelines.pipeline_warnings"),
        "a > 1",
    )
)
register(
    Parser(
        "run filter",
        lambda text: finding._Reader(text, None).parse_expression(),
        RULES,
        finding.LONGEST,
        ("training.experiments.finding", "training.experiments.conditions"),
        "params.lr < 1",
    )
)
register(
    Parser(
        "MLflow filter",
        filters.parse,
        RULES,
        filters.LONGEST,
        ("training.experiments.tracking.filters",),
        "metrics.a > 1",
    )
)
register(
    Parser(
        "Markdown",
        markdown.render,
        MARKDOWN,
        markdown.MAX_MARKS,
        (
            "aiplatform.lib.markdown",
            "training.experiments.reports.documents",
            "training.experiments.reports.presentation",
        ),
        "a",
    )
)
register(
    Parser(
        "line difference",
        lambda texts: line_diff.unified_rows(*texts),
        {
            "shuffled": lambda size: tuple("".join(f"{(n * k) % 101}\n" for n in range(size // 3)) for k in (7, 13)),
            "distinct": lambda size: tuple("".join(f"{k}{n}\n" for n in range(size // 7)) for k in "ab"),
            "reversed": lambda size: (text := "".join(f"{n}\n" for n in range(size // 6)), text[::-1]),
            "one long line": lambda size: ("a" * size, "a" * (size - 1) + "b"),
        },
        8 << 20,
        ("aiplatform.lib.line_diff",),
        ("a", "b"),
    )
)
register(
    Parser(
        "challenge of a registry",
        challenges.parse_challenge,
        {
            "letters": repeated("a", "Bearer "),
            "params": repeated('a="b",', "Bearer "),
            "open": repeated('a="', "Bearer "),
        },
        1 << 16,
        ("aiplatform.lib.challenges",),
        "Bearer a",
    )
)
register(
    Parser(
        "command line",
        lambda text: (script.words(text), secret_names.find_secrets_in_args(script.words(text))),
        WORDS,
        script.MAX_LENGTH,
        (
            "training.programs.script", "training.runs.custom_code", "training.runs.snippets",
            "training.job_templates.services", "aiplatform.lib.secret_names", "aiplatform.lib.shell_words",
        ), 'a b')
)  # fmt: skip
register(
    Parser(
        "network in Python",
        custom_networks._parsed,
        {
            "parentheses": repeated("("), "sum": repeated("1+", "", "1"), "lines": repeated("a\n"),
            "signs": repeated("-", "a = ", "1"), "blocks": repeated("if a:\n a\n"), "names": repeated("a."),
            "digits": repeated("9", "a = "), "text": repeated("a", '"""'), "calls": repeated("f("),
            "lambdas": repeated("lambda:"), "braces in f": repeated("{a}", 'f"', '"'), "commas": repeated("a,"),
        },
        custom_networks.MAX_LENGTH,
        ("training.runs.custom_networks",), 'def build(): pass')
)  # fmt: skip
register(
    Parser(
        "table of accounts",
        batches._rows,
        encoded(CSV),
        batches.MAX_BYTES,
        ("accounts.services.batches",),
        b"username\nann\n",
    )
)
register(
    Parser(
        "list of images",
        lambda data: sources.parse_list(data, "a.csv"),
        encoded(CSV),
        sources.MAX_LIST_BYTES,
        ("inference.batch.sources",),
        b"a.png\n",
    )
)
register(
    Parser("labels of a model", declared.labels_of, JSON, 1 << 20, ("inference.registry.formats.declared",), '["a"]')
)
register(
    Parser(
        "notebook",
        notebooks.read,
        encoded(
            {
                **JSON,
                "cells": repeated('{"cell_type":"code","source":["a"],"outputs":[]},', '{"cells":[', '{}]}'),
                "outputs": repeated(
                    '{"output_type":"stream","text":["a"]},',
                    '{"cells":[{"cell_type":"code","source":"","outputs":[', "{}]}]}",
                ),
                "source": repeated('"a\\n",', '{"cells":[{"cell_type":"markdown","source":[', '""]}]}'),
            }
        ),
        4 << 20,
        ("datasets.files.notebooks",), b'{"cells": [], "nbformat": 4}')
)  # fmt: skip
register(
    Parser(
        "search space",
        lambda text: space.read(text.splitlines()),
        {"digits": repeated("1"), "choices": repeated("a,", "x = "), "lines": numbered("x{} = 1..2\n"),
         "colons": repeated(":"), "dots": repeated(".")},
        20_000,
        ("training.studies.space",), 'lr = 0.1 .. 0.2')
)  # fmt: skip
register(
    Parser(
        "text of a search",
        queries.UNSTORABLE.search,
        {"letters": repeated("a")},
        1 << 20,
        ("aiplatform.lib.queries",),
        "a",
    )
)
register(
    Parser(
        "names in an archive",
        lambda text: (archive_names.decode_all([(line, None, False) for line in text.encode().split(b"\n")]),
                      [archive_names.safe_parts(line) for line in text.split("\n") if _is_sound(line)]),
        {"long": repeated("a"), "folders": repeated("a/"), "names": numbered("f{}\n"), "dots": repeated("."),
         "chinese": repeated("数据\n")},
        1 << 20,
        ("aiplatform.lib.archive_names",), 'a/b')
)  # fmt: skip


def _is_sound(line: str) -> bool:
    return ".." not in line and not line.startswith("/")


def _json(text: str) -> object:
    return parsers.CarefulJSONParser().parse(io.BytesIO(text.encode()))
