"""A10: accounts by the file, in the background, with a report row by row."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils.timezone import now

from accounts.access import clusters
from accounts.access.permissions import USER
from accounts.models import PeopleImport, Role, User
from accounts.services import batches, people, roles
from aiplatform.lib.errors import Invalid
from tests.conftest import signed_in
from tests.factories import people as cast
from workers.core.models import VirtualCluster

pytestmark = pytest.mark.postgres

TABLE = (
    "username,nickname,email,roles\nrosa,Rosa,rosa@example.org,\nalice,A,,User\nli.wei,李伟,,User;Annotation person\n"
)


def begin(olga, text, **more):
    chosen = {"roles": [Role.objects.get(name=USER)], "groups": [], "chosen": []} | more
    return batches.start(data=text.encode() if isinstance(text, str) else text, name="t.csv", by=olga, **chosen)


def test_a10_account_batch_is_made_in_the_background_and_reported(
    olga, as_olga, alice, cluster, sent, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        answer = as_olga.post(
            "/people/file/",
            {
                "file": SimpleUploadedFile("t.csv", TABLE.encode()),
                "roles": [Role.objects.get(name=USER).pk],
                "clusters": [cluster.pk],
            },
        )
    batch = PeopleImport.objects.get()
    assert answer["Location"] == f"/people/file/{batch.pk}/"
    assert sent == [("accounts.import_people", {"batch_id": batch.pk})]
    assert not User.objects.filter(username="rosa").exists()

    batches.run(batch.pk)
    batches.run(batch.pk)  # a doubled message

    rosa, wei = User.objects.get(username="rosa"), User.objects.get(username="li.wei")
    assert (rosa.must_change_password, rosa.email) == (True, "rosa@example.org")
    assert wei.nickname == "李伟"
    assert {role.name for role in wei.roles.all()} == {"User", "Annotator"}
    page = as_olga.get(f"/people/file/{batch.pk}/")
    assert [row.get("said") for row in page.context["rows"]] == ["", "The name “alice” is already in use.", ""]


def test_account_batch_takes_the_columns_of_the_table_of_new_users(olga, cluster):
    other = VirtualCluster.objects.create(name="other")
    batch = begin(
        olga,
        "Display name,Username,Role,Cluster\nRosa,rosa,Annotator,other\n,tom,,\n,uwe,,moon\n",
        chosen=[cluster.pk],
    )
    batches.run(batch.pk)

    batch.refresh_from_db()
    rosa, tom = User.objects.get(username="rosa"), User.objects.get(username="tom")
    assert (rosa.nickname, rosa.roles.get().name, tom.nickname) == ("Rosa", "Annotator", "tom")
    assert (clusters.ids_for_user(rosa), clusters.ids_for_user(tom)) == ([other.pk], [cluster.pk])
    assert batch.report[2] == {"made": None, "said": "No cluster is named “moon”."}


def test_a10_account_batch_first_passwords_are_strong_unique_and_said_once(olga, as_olga):
    batch = begin(olga, "username\n" + "\n".join(f"p{n}" for n in range(5)))
    batches.run(batch.pk)

    first = as_olga.post(f"/people/file/{batch.pk}/result/")
    second = as_olga.post(f"/people/file/{batch.pk}/result/")

    words = [line.split(",")[2] for line in first.content.decode().splitlines()[1:]]
    assert len(set(words)) == 5
    assert all(len(word.replace("-", "")) == 20 for word in words)
    assert User.objects.get(username="p3").check_password(words[3])
    assert second.status_code == 302
    batch.refresh_from_db()
    assert not batch.nonce


def test_a10_account_batch_first_passwords_not_fetched_are_forgotten(olga):
    batch = begin(olga, "username\np1\n")
    batches.run(batch.pk)
    PeopleImport.objects.update(created_at=now() - timedelta(days=2))

    batches.sweep()

    batch.refresh_from_db()
    with pytest.raises(Invalid, match=r"The initial passwords were already downloaded. Create password"):
        batches.result(batch, by=olga)


def test_a10_account_batch_beyond_its_senders_rights_is_refused_whole(db):
    clerk = cast.user("clerk", role=None)
    clerk.roles.add(roles.create(name="clerks", actions=["people.manage"], by=None))
    table = SimpleUploadedFile("t.csv", b"username,roles\np1,clerks\np2,System Admin\n")

    answer = signed_in(clerk).post("/people/file/", {"file": table})

    assert answer.status_code == 403
    assert not PeopleImport.objects.exists()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "first line"),
        ("name,mail\nx,y\n", "first line"),
        ("username\n", "no rows"),
        ('username\n"x', "Not a valid table"),
        ("username\n" + "x\n" * 1001, "at most 1000"),
        (b"\xff\xfe\x81\x00", "text file|first line"),
    ],
)
def test_account_batch_table_that_is_wrong_as_a_whole_makes_nobody(olga, text, says):
    with pytest.raises(Invalid, match=says):
        begin(olga, text)

    assert not PeopleImport.objects.exists()


def test_account_batch_reports_unknown_roles_and_groups_by_row_and_makes_the_others(olga, sent):
    batch = begin(olga, "username,roles,groups\nada,Emperor;King,\nbea,,\ncleo,,Guild\nada dot,,\n")

    batches.run(batch.pk)

    batch.refresh_from_db()
    assert [bool(line["made"]) for line in batch.report] == [False, True, False, False]
    assert batch.report[0]["said"] == "No role is named “Emperor”. No role is named “King”."
    assert batch.report[2]["said"] == "No group is named “Guild”."
    assert User.objects.filter(username="bea").exists()


def test_account_batch_table_of_a_chinese_spreadsheet_reads_right(olga):
    batch = begin(olga, "username,nickname\nli,李伟\n".encode("gb18030"))

    assert batch.rows[0]["nickname"] == "李伟"


def test_account_batch_of_a_dead_worker_goes_on_where_it_stopped(olga, sent, django_capture_on_commit_callbacks):
    batch = begin(olga, "username\np1\np2\n")
    batches.run(batch.pk)
    made = PeopleImport.objects.get(pk=batch.pk).report[:1]
    User.objects.filter(username="p2").delete()
    long_ago = now() - timedelta(minutes=10)
    PeopleImport.objects.update(state="running", report=made, holder="dead", renewed_at=long_ago, created_at=long_ago)

    with django_capture_on_commit_callbacks(execute=True):
        batches.sweep()
    batches.run(batch.pk)

    assert sent[-1] == ("accounts.import_people", {"batch_id": batch.pk})
    assert User.objects.filter(username__in=["p1", "p2"]).count() == 2
    assert PeopleImport.objects.get().state == "done"


def test_account_batch_run_that_was_taken_over_makes_no_more_accounts(olga, monkeypatch):
    batch = begin(olga, "username\np1\np2\n")

    def create(really=people.create, **given):
        made = really(**given)
        PeopleImport.objects.update(holder="another", tries=2)
        return made

    monkeypatch.setattr(people, "create", create)
    batches.run(batch.pk)

    assert not User.objects.filter(username__in=["p1", "p2"]).exists()
    kept = PeopleImport.objects.get()
    assert (kept.state, kept.report) == ("running", [])
