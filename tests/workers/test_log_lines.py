"""Lines of the platform's own in a job's log: as they are written, read again, and added once whoever is killed."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiplatform.client import log_lines as client_lines
from aiplatform.client import waiting
from aiplatform.env import BASE_DIR
from tests.factories import work
from tests.workers.launched import ended, node, placed
from workers.core.runs import RunDir
from workers.execution import closing_lines, launch
from workers.supervisor import log_lines
from workers.supervisor.logfile import LogFile

__all__ = ["node", "placed"]
PROGRAM = log_lines.PROGRAM


@pytest.mark.parametrize(
    ("line", "phase"),
    [
        ("[image] layer number=2 of=3 bytes=23908352 seconds=1.2", "image"),
        ('[command] line argv="python train.py --lr 0.1"', "command"),
        ("[network] own", "network"),
        ("[image] layer number=2", "program"),  # a fact is missing: a program printed it
        ("[network] own and more", "program"),
        ("[nothing] own", "program"),
        ("[epoch 3] loss 0.2", "program"),
        ("", "program"),
    ],
)
def test_log_line_belongs_to_the_phase_whose_code_and_facts_it_has(line, phase):
    assert log_lines.phase_of(line) == phase


@given(st.text(max_size=200))
def test_log_line_is_read_as_it_was_written_whatever_a_fact_says(text):
    line = log_lines.line(log_lines.COMMAND, "line", argv=text)

    assert "\n" not in line
    assert log_lines.read(line) == ("command", "line", {"argv": text})


def test_log_line_of_the_platform_begins_a_line_after_output_without_an_end(tmp_path):
    log = LogFile(str(tmp_path / "log.txt"), 1 << 20, [])
    (tmp_path / "log.txt").write_text("50 %")

    log.add_end(3, "", 1.25)
    log.close()

    assert (tmp_path / "log.txt").read_text() == "50 %\n[program] exited code=3 seconds=1.2\n"


def test_log_begins_once_however_often_it_is_tried(tmp_path):
    opening = [log_lines.line(log_lines.NETWORK, "own")]
    for _ in range(2):
        log = LogFile(str(tmp_path / "log.txt"), 1 << 20, [])
        log.write_opening(opening)
        log.write_opening(opening)

    assert (tmp_path / "log.txt").read_text() == "[network] own\n"


def test_log_begins_below_what_was_said_while_its_image_was_fetched(tmp_path):
    path, opening = tmp_path / "log.txt", [log_lines.line(log_lines.NETWORK, "own")]
    fetching = log_lines.line(log_lines.IMAGE, "fetching", name="torch", done=5, total=10)
    path.write_text(f"{fetching}\n")
    for _ in range(2):
        LogFile(str(path), 1 << 20, []).write_opening(opening)

    assert path.read_text() == f"{fetching}\n[network] own\n"


def test_closing_line_is_added_once_and_never_without_a_log(tmp_path):
    path = tmp_path / "log.txt"
    closing_lines.add(path, PROGRAM, "lost")
    path.write_text("step 1\nste")

    for number in (1, 2):
        closing_lines.add(path, PROGRAM, "again", seconds=10 * number, number=1, most=3)

    assert path.read_text() == "step 1\nste\n[program] again seconds=10 number=1 most=3\n"


def test_closing_line_that_cannot_be_written_stops_nobody(tmp_path, monkeypatch):
    path = tmp_path / "log.txt"
    path.write_text("x\n")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(closing_lines.os, "write", full)
    closing_lines.add(path, PROGRAM, "lost")

    assert path.read_text() == "x\n"


def test_log_line_codes_all_have_words_for_people():
    script = (BASE_DIR / "workers/static/workers/phases.js").read_text()

    known = {
        phase: set(re.findall(r"^    ([a-z_]+): \(", block, re.MULTILINE))
        for phase, block in re.findall(r"^  ([a-z]+): \{\n(.*?)^  \},", script, re.MULTILINE | re.DOTALL)
    }

    assert known == {phase: set(codes) for phase, codes in log_lines.CODES.items()}
    assert tuple(known) == log_lines.PHASES


def test_log_line_facts_are_the_same_on_the_page():
    script = (BASE_DIR / "workers/static/workers/phases.js").read_text()
    block = re.search(r"^const FACTS = .*?^\}\);", script, re.MULTILINE | re.DOTALL)[0]

    known = {
        name: tuple(facts.split()) for name, facts in re.findall(r'^  "([a-z_.]+)": "([a-z_ ]+)",', block, re.MULTILINE)
    }

    written = {f"{phase}.{code}": facts for phase, codes in log_lines.CODES.items() for code, facts in codes.items()}
    assert known == {name: facts for name, facts in written.items() if facts}


@pytest.mark.parametrize("phase", log_lines.PHASES)
def test_aip_knows_the_lines_of_each_phase(phase):
    for code, facts in log_lines.CODES[phase].items():
        line = log_lines.line(phase, code, **dict.fromkeys(facts, 'a "b" c'))

        assert client_lines.phase_of(line) == phase
    assert client_lines.PHASES == log_lines.PHASES
    assert {code: tuple(facts.split()) for code, facts in client_lines.CODES[phase].items()} == log_lines.CODES[phase]


@pytest.mark.parametrize(
    "line", ["[program] done", "[network] ready", "[image] layer number=2", "[network] own port=1", "[program] exited"]
)
def test_aip_takes_no_line_for_the_platforms_that_a_program_printed(line, capsys):
    printer = client_lines.Printer(apart=True)
    printer.add(f"{line}\n")

    assert client_lines.phase_of(line) == ""
    assert capsys.readouterr() == (f"{line}\n", "")


def test_aip_prints_only_the_phases_that_are_wanted_however_a_log_is_cut(capsys):
    log = "[network] own\nstep 1\n[epoch 3] fine\n[program] exited code=0 seconds=1.0\nlast"
    for size in (1, 3, 100):
        printer = client_lines.Printer(["program"])
        for begin in range(0, len(log), size):
            printer.add(log[begin : begin + size])
        printer.end()

        assert capsys.readouterr().out == log.partition("\n")[2]


def test_aip_prints_only_the_lines_of_the_process_that_is_wanted(capsys):
    log = "[network] own\n[rank1]: a\n[default2]:b\nplain\n[1,2]<stderr>:c\n[rank2]: 10 %\r[rank2]: 20 %\n[rank12]: d"
    for size in (1, 3, 100):
        printer = client_lines.Printer(process=2)
        for begin in range(0, len(log), size):
            printer.add(log[begin : begin + size])
        printer.end()

        assert capsys.readouterr().out == "[default2]:b\n[1,2]<stderr>:c\n[rank2]: 10 %\r[rank2]: 20 %\n"


@pytest.mark.parametrize(
    ("process", "said"),
    [
        (1, ""),
        (9, "No line was printed by process 9. Lines exist of 1, 2.\n"),
        (-1, ""),
    ],
)
def test_aip_says_which_processes_a_log_has_where_the_wanted_one_printed_nothing(capsys, process, said):
    waiting.follow_log(_Log("[network] own\n[rank1]: a\n[rank2]: b\nplain\n"), "log/", follow=False, process=process)

    assert capsys.readouterr().err == said


def test_aip_says_where_no_line_names_a_process(capsys):
    waiting.follow_log(_Log("plain\n"), "log/", follow=False, process=0)

    assert capsys.readouterr() == (
        "", "No line was printed by process 0, and no line names a process: remove --process.\n",
    )  # fmt: skip


class _Log:
    """A client that has a whole log."""

    def __init__(self, text):
        self.text = text

    def get(self, _route, *, offset):
        size = len(self.text)
        return {"text": self.text[offset:], "offset": offset, "next_offset": size, "size": size, "ended": True}


def test_aip_keeps_what_the_program_printed_apart(capsys):
    printer = client_lines.Printer(apart=True)
    printer.add("[network] own\n[1] mine\n50 %")
    printer.end()

    assert capsys.readouterr() == ("[1] mine\n50 %", "[network] own\n")


@pytest.mark.django_db
def test_log_of_each_machine_of_a_job_is_read_by_its_rank(api, alice, cluster):
    job = work.job(alice, cluster, state="running", nodes=2)
    run = work.run_dir(job)
    run.log.write_bytes(b"first\n")
    (run.path / "ranks" / "1").mkdir(parents=True)
    (run.path / "ranks" / "1" / "log.txt").write_bytes(b"second\n")
    route = f"/api/v1/jobs/{job.pk}/log/"

    texts = [api.get(route, {"rank": rank}).json()["text"] for rank in (0, 1)]
    raw = api.get(f"{route}raw/", {"rank": 1})

    assert texts == ["first\n", "second\n"]
    assert b"".join(raw.streaming_content) == b"second\n"
    assert api.get(route, {"rank": 2}).status_code == 404


@pytest.mark.django_db
def test_log_opening_counts_secrets_and_stars_them_out(placed):
    job, attempt = placed(
        ["/bin/echo", "say 'mypass-word'"], env={"KEY": "say 'mypass-word'"}, secrets=["say 'mypass-word'"]
    )

    launch.start(attempt.pk)
    ended(job)
    log = RunDir.for_attempt(job.pk, 1).log.read_text()
    lines = [found for line in log.splitlines() if (found := log_lines.read(line))]

    assert [phase for phase, _code, _facts in lines] == [
        "environment", "environment", "environment", "network", "variables", "image", "command", "program",
    ]  # fmt: skip
    assert lines[4][2]["secret"] == "2"  # and the token by which it may report
    assert "mypass-word" not in log
    assert lines[-1][1:] == ("exited", {"code": "0", "seconds": lines[-1][2]["seconds"]})
