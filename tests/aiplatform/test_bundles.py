"""Bundles hold what pages would otherwise load module by module, and run each module once."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from django.template import Context, Template
from django.templatetags.static import static
from django.test import Client

from aiplatform.lib import bundles, static_files

ROOT = Path(__file__).parents[2]
SOURCES = {
    str(path).rsplit("/static/", 1)[1]: path.read_text()
    for app in ROOT.iterdir()
    if (app / "__init__.py").exists()
    for path in app.glob("**/static/*/**/*.js")
}
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="no Node.js")

#: Links all modules with Node's own parser, without running them, and says what it found; parses the bundles.
PARSER = """
import { SourceTextModule } from "node:vm";
import { posix } from "node:path";
import { readFileSync } from "node:fs";
const { sources, bundles } = JSON.parse(readFileSync(0, "utf8"));
const resolve = (specifier, from) => posix.join(posix.dirname(from), specifier);
const modules = Object.fromEntries(
  Object.entries(sources).map(([name, text]) => [name, new SourceTextModule(text, { identifier: name })]),
);
const found = {};
for (const [name, module] of Object.entries(modules)) {
  const find = (specifier, from) => modules[resolve(specifier, from.identifier)];
  if (module.status === "unlinked") await module.link(find);
  const imports = module.dependencySpecifiers.map((specifier) => resolve(specifier, name));
  const exports = Reflect.ownKeys(module.namespace).filter((key) => typeof key === "string");
  found[name] = { imports: imports.sort(), exports: exports.sort() };
}
for (const [name, text] of Object.entries(bundles)) new SourceTextModule(text, { identifier: name });
console.log(JSON.stringify(found));
"""


def run(script: str, given: object = None, cwd: Path = ROOT) -> str:
    """Run a module in Node and return what it prints."""
    command = [str(NODE), "--no-warnings", "--experimental-vm-modules", "--input-type=module", "-e", script]
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, cwd=cwd, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_node
def test_every_script_is_read_as_a_parser_of_the_language_reads_it():
    parsed = {name: bundles._parse(name, text) for name, text in SOURCES.items()}
    texts = {name: bundles.build_script([name], SOURCES.__getitem__) for name in SOURCES if name != bundles.REGISTRY}

    found = json.loads(run(PARSER, {"sources": SOURCES, "bundles": texts}))

    ours = {
        name: {"imports": sorted(set(module.imports)), "exports": sorted(name for name, _local in module.exports)}
        for name, module in parsed.items()
    }
    assert {name: (ours[name], found[name]) for name in ours if ours[name] != found[name]} == {}


#: A frame and two pages' entries that share modules.
SMALL = {
    "base/modules.js": SOURCES["base/modules.js"],
    "base/frame.js": 'import { note } from "./notes.js";\nnote("frame");\n',
    "base/notes.js": "export const notes = [];\n\nexport function note(text) {\n  notes.push(text);\n}\n",
    "app/shared.js": 'import { note } from "../base/notes.js";\nnote("shared");\nexport default class Shared {}\n',
    "app/one.js": (
        'import * as all from "./unused.js";\n'
        'import {\n  note,\n  notes as list,\n} from "../base/notes.js";\n'
        "globalThis.notes = list;\nnote(`one ${typeof all.default} ${Object.keys(all)}`);\n"
        'const later = await import("./later.js");\nnote(later.text);\n'
    ),
    "app/unused.js": (
        'import Shared from "./shared.js";\nconst made = new Shared();\nexport { Shared as default, made as first };\n'
    ),
    "app/later.js": (
        'import "./shared.js";\nconst { href } = new URL("icons.svg", import.meta.url);\n'
        'export const text = href.split("/").slice(-2).join("/");\n'
    ),
    "app/two.js": 'import { note } from "../base/notes.js";\nimport "./shared.js";\nnote("two");\n',
    "app/broken.js": 'throw new Error("broken");\n',
}


@needs_node
def test_modules_run_once_whatever_bundles_they_are_in(tmp_path):
    read = SMALL.__getitem__
    for names in (["base/frame.js"], ["app/broken.js", "app/one.js"], ["app/two.js"], ["app/later.js"]):
        target = tmp_path / bundles.address(names)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(bundles.build_script(names, read))
    (tmp_path / "package.json").write_text('{"type": "module"}')

    printed = run(
        """globalThis.reportError = (error) => { globalThis.reported = error.message; };
        await import("./bundle/base/frame.js");
        await import("./bundle/app/broken.js+app/one.js");
        while (notes.length < 4) await new Promise((done) => setTimeout(done, 5));  // one.js awaits a bundle of its own
        await import("./bundle/app/two.js");
        console.log(JSON.stringify([notes, reported]));""",
        cwd=tmp_path,
    )

    notes = ["frame", "shared", "one function default,first", "app/icons.svg", "two"]
    assert json.loads(printed) == [notes, "broken"]


def test_bundles_leave_out_lines_of_comments_and_keep_the_numbers_of_lines():
    text = '/** @param {number} a\n * b */\nexport const a = 1; // kept\n  // dropped\nconst url = "//x"; /* kept */\n'

    module = bundles._parse("a.js", text)

    assert module.body == '\n\nconst a = 1; // kept\n\nconst url = "//x"; /* kept */\n'


def test_no_script_has_lines_in_a_template_literal_that_look_like_comments():
    inside = []
    for name, text in SOURCES.items():
        backticks = end = 0
        for match in bundles._COMMENT_LINES.finditer(text):
            backticks += text.count("`", end, match.start())
            end = match.end()
            if backticks % 2:
                inside.append(f"{name}: {match[0][:60]}")

    assert inside == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("export let count = 0;\n", "not understood"),
        ('export * from "./b.js";\n', "not understood"),
        ('import { a } from "library";\n', "not relative"),
        ('import "./b.js";\n', "circle"),
        ('import "./waits.js";\n', "waits"),
        ("console.log(import.meta.env);\n", "import.meta"),
    ],
)
def test_what_bundles_do_not_support_is_refused(text, reason):
    files = {
        "base/modules.js": "",
        "base/frame.js": "",
        "a.js": text,
        "b.js": 'import "./a.js";\n',
        "waits.js": "await 1;\n",
    }

    with pytest.raises(bundles.BundleError, match=reason):
        bundles.build(["a.js"], files.__getitem__)


def test_style_sheets_are_joined_without_comments_and_not_where_they_name_files():
    files = {"a.css": "/* x */\na {\n  content: '/* y */';\n}\n", "b.css": "b {}\n", "c.css": "c { src: url(x.woff2) }"}

    assert bundles.build(["a.css", "b.css"], files.__getitem__) == "a {\ncontent: '/* y */';\n}\nb {}\n"
    with pytest.raises(bundles.BundleError):
        bundles.build(["a.css", "c.css"], files.__getitem__)


def test_pages_name_one_script_and_one_style_sheet():
    tags = "".join(f'<link rel="stylesheet" href="{static(name)}">' for name in ("base/base.css", "base/bars.css"))
    tags += f'<script src="{static("uplot/uPlot.iife.js")}"></script>'
    tags += "".join(
        f'<script type="module" src="{static(name)}"></script>' for name in ("workers/job.js", "training/strip.js")
    )

    page = Template("{% load bundling %}{% bundle %}{{ tags|safe }}{% endbundle %}").render(Context({"tags": tags}))

    prefix = f"/static/{static_files.fingerprint()}/"
    assert re.findall(r'(?:href|src)="([^"]+)"', page) == [
        f"{prefix}bundle/base/base.css+base/bars.css",
        f"{prefix}uplot/uPlot.iife.js",
        f"{prefix}bundle/workers/job.js+training/strip.js",
    ]


def test_pages_name_the_files_themselves_while_debugging(settings):
    settings.DEBUG = True
    tag = '<script type="module" src="/static/base/frame.js"></script>'

    page = Template("{% load bundling %}{% bundle %}{{ tag|safe }}{% endbundle %}").render(Context({"tag": tag}))

    assert page == tag


def test_bundles_are_served_compressed_and_only_of_static_files():
    prefix = f"/static/{static_files.fingerprint()}/bundle/"
    client = Client(headers={"Accept-Encoding": "br"})

    frame = client.get(f"{prefix}base/frame.js")

    assert (frame.status_code, frame["Content-Encoding"], frame["Vary"]) == (200, "br", "Accept-Encoding")
    assert frame["Cache-Control"] == static_files.KEPT_FOR_A_YEAR
    assert len(frame.content) < 20_000 < len(Client().get(f"{prefix}base/frame.js").content)
    assert client.post(f"{prefix}base/frame.js").status_code == 405
    for names in ("../settings.js", "base/frame.js+base/base.css", "base/none.js", "base/frame.js+base/frame.js", ""):
        assert client.get(prefix + names).status_code == 404, names


def test_module_scripts_outside_bundles_import_nothing():
    inside = re.compile(r"{% block scripts %}.*?{% endblock scripts %}|{% bundle %}.*?{% endbundle %}", re.DOTALL)
    named = re.compile(r"""<script type="module" src="{% static ['"]([^'"]+)['"] %}""")
    for template in (ROOT / "templates").rglob("*.html"):
        if template.name == "_job_scripts.html":  # included in the block of scripts
            continue
        for name in named.findall(inside.sub("", template.read_text())):
            assert bundles._parse(name, SOURCES[name]).imports == (), (template.name, name)
