"""Job, queue, machines and tasks in a real browser: live log and curves, keyboard, every width and theme."""

import contextlib
import json
import math
import time

import pytest
from django.utils.timezone import now

from aiplatform.lib.wording import message, verbatim
from tests.factories import curves, work
from tests.fakes.kinds import RememberingKind
from workers.core import kinds
from workers.core.models import Job, JobEvent
from workers.jobs.output import metrics


@pytest.fixture(autouse=True)
def _kind():
    with kinds.KINDS.temporarily(RememberingKind()):
        yield


@pytest.fixture
def node(site):
    return work.node(
        "node1",
        gpus=4,
        simulated=True,
        facts={"cpu_percent": 42.0, "memory_used_mib": 3000, "disk_free_bytes": 10**9, "disk_total_bytes": 4 * 10**9},
    )


@pytest.fixture
def running(alice, cluster, node):
    job = work.job(alice, cluster, name="digits", state="running", gpus_per_node=1, progress=0.4, eta_s=75)
    work.hold(job, node.devices.get(kind="gpu", index=1))
    JobEvent.objects.create(job=job, attempt=1, event="started", state="running", message=message("job.started"))
    work.run_dir(job).log.write_bytes(b"hello from the job\n")
    return job


def curve(job, key, values):
    curves.report(job.attempts.get(), key, ((10 * n, value) for n, value in enumerate(values)))


def write(job, data: bytes):
    with work.run_dir(job).log.open("ab") as log:
        log.write(data)


@contextlib.contextmanager
def thread_seconds(page):
    """Append to the list it gives the CPU seconds that the page's main thread used in the block.

    Unlike frame times they do not depend on what else runs.
    """
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def used():
        rows = session.send("Performance.getMetrics")["metrics"]
        return next(row["value"] for row in rows if row["name"] == "ThreadTime")

    spent, before = [], used()
    yield spent
    spent.append(used() - before)
    session.detach()


def until(page, expression, patience_s=10.0):
    """Wait until a JavaScript expression is true; Playwright's own way is closed by the site's policy."""
    deadline = time.monotonic() + patience_s
    while not page.evaluate(expression):
        assert time.monotonic() < deadline, expression
        page.wait_for_timeout(50)


def line(page, text):
    return page.locator(".log-line", has_text=text).last


def lines(page):
    return page.locator("[data-log-lines]").inner_text()


def test_job_log_view_shows_lines_as_they_are_written(open_as, running, alice):
    page = open_as(alice)
    page.goto(f"/jobs/{running.pk}/")
    page.get_by_text("hello from the job").wait_for()

    write(running, "epoch 1 数据\r10%\r100% done\n\x1b[31mred\x1b[0m plain\n".encode())

    page.get_by_text("100% done").wait_for()
    assert "10%\n" not in lines(page)
    assert page.locator(".ansi-1").inner_text() == "red"


def test_H01_job_log_view_shows_a_log_as_text_whatever_it_says(open_as, running, alice):
    attack = (
        b"<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>\n"
        b"\x1b]8;;javascript:window.hacked=1\x07click\x1b]8;;\x07 \x1b]52;c;aGFja2Vk\x07\n"
        b"\x1b]0;title\x07 \x1b[2J\x1b[5A up\n"
        b"end of attack\n"
    )
    write(running, attack)
    page = open_as(alice)
    page.goto(f"/jobs/{running.pk}/")

    page.get_by_text("end of attack").wait_for()

    assert page.evaluate("window.hacked") is None
    assert "<script>" in lines(page)
    assert "\u241b]8;;javascript:" in lines(page)
    assert page.locator("[data-log-lines] a, [data-log-lines] img, [data-log-lines] script").count() == 0


def test_H02_job_log_view_takes_no_harm_from_one_huge_line(open_as, running, alice):
    write(running, b"y" * 3_000_000 + b"\nafter the long line\n")
    page = open_as(alice)
    page.goto(f"/jobs/{running.pk}/")

    page.get_by_text("after the long line").wait_for()
    page.get_by_text("line truncated, download the log for the complete line").first.wait_for()

    longest = page.evaluate("Math.max(...[...document.querySelectorAll('.log-line')].map(e => e.textContent.length))")
    assert longest < 25_000


def test_job_log_view_scrolls_and_searches_100000_lines_quickly(open_as, running, alice):
    write(running, b"".join(b"%06d step loss=%.4f\n" % (n, 1 / (n + 1)) for n in range(100_000)))
    page = open_as(alice)
    page.goto(f"/jobs/{running.pk}/")
    until(page, "document.querySelector('[data-log]').logView?.lines.count >= 100000", 40)

    with thread_seconds(page) as scrolling:
        page.evaluate(
            """async () => {
              const view = document.querySelector("[data-log-view]");
              for (let i = 0; i < 60; i += 1) {
                view.scrollTop = view.scrollHeight * (59 - i) / 60;
                await new Promise(requestAnimationFrame);
              }
            }"""
        )
    with thread_seconds(page) as searching:
        hits = page.evaluate(
            """() => { const log = document.querySelector("[data-log]").logView;
                       log.search("099999 step"); return log.hits.found.length; }"""
        )

    assert page.locator(".log-line").count() < 120
    assert 0 < scrolling[0] < 60 / 60  # of 60 frames a second
    assert hits == 1
    assert 0 < searching[0] < 0.25
    assert "099999 step" in page.locator(".log-line-now").inner_text()


def test_job_log_view_stops_following_on_scrolling_up_and_returns(open_as, running, alice):
    write(running, b"".join(b"line %d\n" % n for n in range(500)))
    page = open_as(alice)
    page.goto(f"/jobs/{running.pk}/")
    line(page, "line 499").wait_for()
    follow = page.locator("[data-log-follow]")

    page.locator("[data-log-view]").hover()
    page.mouse.wheel(0, -3000)
    until(page, "document.querySelector('[data-log-follow]').ariaPressed === 'false'")
    write(running, b"news\n")
    until(page, "document.querySelector('[data-log]').logView.lines.count >= 502")
    hidden = page.locator(".log-line", has_text="news").count()
    follow.click()
    line(page, "news").wait_for()

    assert hidden == 0


def test_job_log_view_search_error_and_wrap_work_by_keyboard(open_as, running, alice):
    write(running, b"fine\n" * 200 + b"RuntimeError: boom " + b"z" * 400 + b"\n" + b"fine\n" * 200 + b"boom again\n")
    page = open_as(alice)
    page.goto(f"/jobs/{running.pk}/")
    page.get_by_text("boom again").wait_for()

    page.get_by_label("Search the log").fill("boom")
    page.get_by_text("/ 2").wait_for()
    page.keyboard.press("Enter")
    page.locator("[data-log-wrap]").press("Enter")
    page.locator("[data-log-error]").press("Enter")

    assert "RuntimeError: boom" in lines(page)
    box = page.locator(".log-line", has_text="RuntimeError").bounding_box()
    assert box["height"] > 30
    assert page.locator("[data-log-view]").evaluate("e => e.scrollWidth <= e.clientWidth + 1")


def test_job_curves_grow_while_one_looks(open_as, running, alice):
    curve(running, "train/loss", [math.exp(-n / 30) + 0.1 for n in range(120)])
    page = open_as(alice)
    page.goto(f"/jobs/{running.pk}/")
    page.get_by_role("heading", name="Loss").wait_for()

    curve(running, "val/ap", [0.1, 0.2])
    metrics.record_system(running.attempts.get(), {"system/cpu": 120.0, "system/gpu1_util": 60.0})

    page.get_by_role("heading", name="Average precision").wait_for()
    assert page.locator(".chart-card:visible canvas").count() == 2
    page.get_by_role("tab", name="System").click()
    page.get_by_role("heading", name="GPU utilization").wait_for()
    assert page.locator(".chart-card:visible h3").all_inner_texts() == ["CPU", "GPU utilization"]
    page.reload()
    page.get_by_role("heading", name="GPU utilization").wait_for()  # the address names the tab
    page.keyboard.press("Tab")
    page.get_by_role("tab", name="System").press("ArrowLeft")
    page.locator("[data-chart-log]").click()
    page.locator("[data-chart-axis]").select_option("time")
    page.locator("[data-chart-smooth]").fill("0.6")
    page.get_by_label("Export Loss", exact=True).click()
    with page.expect_download() as png:
        page.get_by_label("Save Loss as PNG").click()
    with page.expect_download() as csv:
        page.locator("[data-charts-csv]").click()
    assert png.value.suggested_filename == "Loss.png"
    assert "train/loss" in csv.value.path().read_text()


def test_job_page_head_follows_the_job_and_disabled_buttons_say_why(open_as, running, alice):
    page = open_as(alice)
    page.goto(f"/jobs/{running.pk}/")
    page.get_by_text("hello from the job").wait_for()

    page.locator("#run-again summary").click()
    page.locator("#again-continue").click(force=True)
    page.locator(".toast", has_text="Only a paused job can be continued.").wait_for()
    page.keyboard.press("Escape")
    Job.objects.filter(pk=running.pk).update(progress=0.77, eta_s=30, phase="scoring")
    page.get_by_text("77 %").wait_for()
    page.get_by_text("Evaluating", exact=True).wait_for()
    Job.objects.filter(pk=running.pk).update(state="paused", desired="pause", message=verbatim("Paused by its owner."))

    page.get_by_text("Paused by its owner.").wait_for()
    page.locator("#job-continue:not([data-shut])").wait_for()
    assert page.locator("#job-pause").count() == 0


def test_job_page_button_acts_without_leaving_the_page(open_as, running, alice):
    page = open_as(alice)
    page.goto(f"/jobs/{running.pk}/")
    page.get_by_text("hello from the job").wait_for()

    page.locator("#job-stop").click()
    page.locator("dialog").get_by_role("button", name="Stop").click()

    page.get_by_text("stop requested", exact=True).wait_for()
    running.refresh_from_db()
    assert running.desired == "stop"


PAGES = ["/queue/", "/cluster/", "/tasks/", "/clusters/", "/clusters/new/"]


@pytest.fixture
def busy(running, alice, bob, cluster):
    """A platform with something of everything."""
    curve(running, "train/loss", [math.exp(-n / 30) + 0.1 for n in range(120)])
    curve(running, "val/ap50", [n / 100 for n in range(60)])
    for n, (state, owner) in enumerate([("failed", bob), ("paused", alice), ("succeeded", alice)]):
        work.job(
            owner, cluster, name=f"run {n}", state=state, message=verbatim("exit code 1" if state == "failed" else "")
        )
    for n in range(4):
        args = {"asked": 4, "free": 1}
        work.job(
            bob if n % 2 else alice,
            cluster,
            name=f"wish {n}",
            gpus_per_node=4,
            wait_code="no_cards",
            wait_args=args,
            position=n + 1,
            eta=now(),
        )
    write(running, json.dumps({"step": 1}).encode() + b"\n" + b"\x1b[33mwarning\x1b[0m slow disk\n" * 30)
    return [*PAGES, f"/jobs/{running.pk}/", f"/cluster/nodes/{work.Node.objects.get().pk}/", f"/clusters/{cluster.pk}/"]


@pytest.mark.parametrize("dark", [False, True])
def test_job_pages_have_no_accessibility_violation(open_as, olga, busy, accessible, shot, dark):
    page = open_as(olga, dark=dark)

    for path in busy:
        page.goto(path)
        page.wait_for_timeout(400)
        shot(page, f"workers{path.replace('/', '-')}{'dark' if dark else 'light'}", full=True)
        accessible(page)


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_job_pages_fit_their_window(open_as, olga, busy, fits, shot, width):
    page = open_as(olga, width=width)

    for path in busy:
        page.goto(path)
        page.wait_for_timeout(300)
        fits(page)
        shot(page, f"workers{path.replace('/', '-')}{width}", full=True)


@pytest.mark.parametrize("width", [1280, 390])
def test_job_log_view_tools_stay_on_one_line(open_as, running, alice, accessible, fits, shot, width):
    page = open_as(alice, width=width, height=844)
    page.goto(f"/jobs/{running.pk}/")
    page.get_by_text("hello from the job").wait_for()
    page.locator("[data-log-find]").fill("hello")

    page.get_by_text("1 / 1").wait_for()

    height = page.evaluate("document.querySelector('.log-bar').getBoundingClientRect().height")
    assert height < 60
    for name in ("First error", "Wrap", "Follow", "Download"):
        assert page.locator(".log-tools").get_by_text(name, exact=True).count() == 1
    shot(page, f"log-bar-{width}")
    fits(page)
    accessible(page)


def test_job_curves_have_names_for_people_beside_their_keys(open_as, running, alice, shot):
    for key in ("train/loss", "val/ap50", "val/ap50/cells", "own/figure"):
        curve(running, key, [0.1, 0.2, 0.3])
    page = open_as(alice)
    page.goto(f"/jobs/{running.pk}/")

    page.get_by_role("heading", name="AP50 on validation, by class").wait_for()

    titles = page.locator(".chart-card h3").all_inner_texts()
    assert set(titles) == {"Loss", "Average precision", "AP50 on validation, by class", "figure own/figure"}
    legends = page.locator(".chart-legend:visible").all_inner_texts()
    assert legends == []  # a line alone is named by the title of its chart
    table = page.locator("[data-charts-values] th[scope=row]")
    assert "Training loss train/loss" in table.all_text_contents()
    shot(page, "charts-named", full=True)
