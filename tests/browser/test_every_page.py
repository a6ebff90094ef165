"""Every page: accessible in both themes and languages, inside its window, also with texts 40 % longer."""

from __future__ import annotations

import pytest

from tests.browser.conftest import COLOUR_RULES
from tests.conftest import signed_in
from tests.factories import training as trainings
from tests.factories import work as rows
from tests.inference import judged
from tests.plain_routes import action_of, plain_routes

PARTS = 4  # so that none takes as long as a test that hangs
NEXT_FRAME = "() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"  # observers of sizes run
#: Lengthens every text of a page by 40 %, as a translation may; words keep their lengths.
LONGER = """() => {
  const longer = (text) => {
    const words = text.trim().split(/\\s+/);
    const more = Math.ceil(text.trim().length * 0.4);
    let extra = "";
    for (let i = 0; extra.length < more; i += 1) extra += " " + words[i % words.length];
    return text + extra.slice(0, Math.max(more, words[0].length + 1));
  };
  const skipped = "script, style, textarea, pre, code, kbd, canvas, .mono, .num, .log-view, .sr-only, svg";
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const nodes = [];
  while (walker.nextNode()) nodes.push(walker.currentNode);
  for (const node of nodes) {
    if (/\\p{L}{2}/u.test(node.data) && !node.parentElement.closest(skipped)) node.data = longer(node.data);
  }
}"""


def pages(user) -> list[str]:
    """Paths that answer a plain GET with a whole page (no API, no parts, no files)."""
    client, found = signed_in(user), []
    for path, pattern in plain_routes().items():
        if path.startswith("/api/") or action_of(pattern) is None:
            continue
        answer = client.get(path)
        if answer.status_code == 200 and b"</html>" in b"".join(answer):
            found.append(path)
    return found


@pytest.fixture
def things(site, olga, cluster, tmp_path) -> list[str]:
    """One of each, and the addresses of their pages."""
    node = rows.node("node1", gpus=2, simulated=True)
    judgement = judged.evaluation(olga, tmp_path)
    training = trainings.training(olga, state="running")
    version = training.version
    model = judgement.model_version.model_id
    tabs = [
        f"/training/{training.pk}/{tab}" for tab in ("", "log/", "metrics/", "images/", "files/", "events/", "spec/")
    ]
    data = [f"/datasets/{version.dataset_id}/", f"/datasets/{version.dataset_id}/edit/"]
    return [*tabs, *data, f"/models/{model}/", f"/evaluations/{judgement.pk}/", f"/cluster/nodes/{node.pk}/"]


#: The short form looks at each page in one of the ways, the long one in both.
WAYS = {"narrow-english": (390, "en"), "wide-chinese": (1440, "zh-CN")}
LOOKS = [
    pytest.param(*way, part, id=f"{name}-{part}", marks=[pytest.mark.long] if part % 2 != place else [])
    for place, (name, way) in enumerate(WAYS.items())
    for part in range(PARTS)
]


@pytest.mark.parametrize(("width", "language", "part"), LOOKS)
def test_pages_are_accessible_and_fit(open_as, olga, things, accessible, fits, shot, width, language, part):
    page = open_as(olga, width=width, height=844, language=language)
    wrong: list[str] = []

    def hold(what: str, rule, **more) -> None:
        try:
            rule(page, **more)
        except AssertionError as exc:
            wrong.append(f"{what}: {str(exc)[:1200]}")

    for path in [*pages(olga), *things][part::PARTS]:
        page.emulate_media(color_scheme="light")
        if page.goto(path).status != 200:
            wrong.append(f"{path} is no page")
            continue
        hold("fits", fits)
        hold("light", accessible)
        page.emulate_media(color_scheme="dark", reduced_motion="reduce")
        page.evaluate("() => Promise.allSettled(document.getAnimations().map((one) => one.finished))")  # colours arrive
        hold("dark", accessible, rules=COLOUR_RULES)
        page.evaluate(LONGER)
        page.evaluate(NEXT_FRAME)
        hold("longer texts", fits)
        shot(page, f"page{path.replace('/', '-')}{width}", full=True)

    assert not wrong, "\n".join(wrong)
