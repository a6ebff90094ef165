"""Markdown that people write, as HTML that is safe to show."""

from __future__ import annotations

import pytest

from aiplatform.lib import markdown
from tests.cases import case_table


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("# One", "<h3>One</h3>"),
        ("**a** *b* `c`", "<p><strong>a</strong> <em>b</em> <code>c</code></p>"),
        ("- a\n- b", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>"),
        ("[x](https://example.org/?a=1&b=2)", 'href="https://example.org/?a=1&amp;b=2" rel="noopener'),
        ("[x](/models/3/)", 'href="/models/3/"'),
        ("| a |\n|---|\n| 1 |", "<td>1</td>"),
        ("", ""),
    ],
)
def test_markdown_is_shown(text, html):
    assert html in markdown.render(text)


@case_table(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "[x](JAVASCRIPT&colon;alert(1))",
        "[x](data:text/html,x)",
        "[x](//evil.example)",
        "![x](https://evil.example/p.png)",
        '[x](https://a/"onmouseover=alert(1))',
        "<a href='javascript:x'>y</a>",
        "# <b onclick=x>y</b>",
        "`<script>`",
        "| <script> |\n|---|\n| <i> |",
        "<https://a/<script>>",
        "\x00<script>",
    ],
)
def test_markdown_holds_no_code_and_asks_no_other_host(text):
    html = markdown.render(text).lower()

    for word in ("<script", "<img", "<b ", "<i>", 'href="javascript', 'href="data:', 'href="//', "<a href='"):
        assert word not in html
    assert 'onmouseover="' not in html
    assert '"onmouseover' not in html


def test_deep_markdown_ends():
    assert markdown.render(">" * 50_000 + "[" * 20_000)
    assert markdown.render("*" * 50_000)
