"""Machines come by a one-time token and a proof of the shared folder, and go only when nothing runs on them."""

import secrets
from datetime import timedelta

import pytest
from django.utils.timezone import now

from accounts.models import AuditEntry
from aiplatform import env
from aiplatform.lib import inner_port
from tests.factories import work
from workers.core.models import JoinToken, Node
from workers.execution.agent.loop import Agent
from workers.resources.nodes import lifecycle
from workers.scheduling import liveness

pytestmark = pytest.mark.django_db
JOIN = "/api/v1/nodes/join/"


@pytest.fixture
def over_tcp(monkeypatch):
    monkeypatch.setattr(env, "DATABASE_URL", "postgresql://aip:x@10.0.0.1/aip")
    monkeypatch.setattr(env, "REDIS_URL", "redis://:x@10.0.0.1:6379/0")


@pytest.fixture
def machine(settings, client):
    """Ask to join as a machine would; what is given replaces what is right."""

    def ask(token, name="node2", shared=True, id_="a" * 64):
        probe, content = secrets.token_hex(16), secrets.token_hex(32)
        folder = settings.DATA_ROOT / lifecycle.PROBES
        folder.mkdir(exist_ok=True)
        if shared:
            (folder / probe).write_text(content)
        body = {"token": token, "name": name, "machine": id_, "address": "10.0.0.2", "probe": probe, "content": content}
        answer = client.post(JOIN, body, content_type="application/json")
        return answer.status_code, answer.json(), folder / f"{probe}.answer"

    return ask


def test_node_token_lets_one_machine_in_once(over_tcp, machine, olga):
    _row, secret = lifecycle.make_token(by=olga)

    status, told, answer = machine(secret)
    again, refused, _ = machine(secret, name="node3")

    assert status == 201
    assert told["variables"]["AIP_DATABASE_URL"] == "postgresql://aip:x@10.0.0.1/aip"
    assert answer.exists()  # the machine sees that the folder is shared in the other direction too
    node = Node.objects.get(name="node2")
    assert (node.state, node.address, node.events.get().event) == ("suspect", "10.0.0.2", "joined")
    assert (again, refused["code"]) == (403, "join_token_invalid")
    assert secret not in str(JoinToken.objects.values())


def test_node_token_that_expired_lets_nobody_in(over_tcp, machine):
    _row, secret = lifecycle.make_token(lifetime=-timedelta(seconds=1))

    assert machine(secret)[:2][0] == 403


def test_node_registration_finds_another_folder_and_keeps_the_token(over_tcp, machine):
    _row, secret = lifecycle.make_token()

    status, told, _ = machine(secret, shared=False)

    assert (status, told["code"]) == (409, "data_root_differs")
    assert machine(secret)[0] == 201


def test_node_name_belongs_to_one_machine(over_tcp, machine):
    tokens = [lifecycle.make_token()[1] for _ in range(4)]
    machine(tokens[0])

    same = machine(tokens[1])[0]
    other, told, _ = machine(tokens[2], name="NODE2", id_="b" * 64)
    lifecycle.remove(Node.objects.get())
    after = machine(tokens[2], id_="b" * 64)[0]

    assert same == 201
    assert (other, told["code"]) == (409, "name_taken")
    assert after == 201
    assert Node.objects.get().machine == "b" * 64


@pytest.mark.parametrize(
    ("database", "broker", "word"),
    [
        ("", "redis://h/0", "PostgreSQL"),
        ("postgresql://u@h/d", "", "TCP"),
        ("postgresql://u@h/d", "unix:///run/x", "TCP"),
        ("postgresql://u@localhost/d", "redis://h/0", "AIP_NODE_DATABASE_URL"),
        ("postgresql:///d?host=/run", "redis://h/0", "AIP_NODE_DATABASE_URL"),
        ("postgresql://u@h/d", "redis://127.0.0.1/0", "AIP_NODE_REDIS_URL"),
    ],
)
def test_node_token_is_not_made_on_a_single_machine_setup(monkeypatch, database, broker, word):
    monkeypatch.setattr(env, "DATABASE_URL", database)
    monkeypatch.setattr(env, "REDIS_URL", broker)

    with pytest.raises(lifecycle.OneMachineOnly, match=word):
        lifecycle.make_token()


@pytest.mark.parametrize("reached", [True, False])
def test_node_proves_its_folder_by_its_own_id_and_hears_whether_it_is_reached(
    over_tcp, machine, client, settings, monkeypatch, reached
):
    monkeypatch.setattr(inner_port, "answers", lambda address, port: reached and address == "10.0.0.2")
    machine(lifecycle.make_token()[1])
    (settings.DATA_ROOT / lifecycle.PROBES / ("c" * 32)).write_text("text")
    body = {"name": "node2", "machine": "a" * 64, "probe": "c" * 32, "content": "text"}

    def ask(**other):
        return client.post("/api/v1/nodes/probe/", body | other, content_type="application/json").status_code

    answer = client.post("/api/v1/nodes/probe/", body, content_type="application/json").json()
    assert (answer["shared"], answer["reached"]) == (True, reached)
    assert (ask(machine="b" * 64), ask(content="other"), ask(probe="../secret")) == (403, 409, 400)


def test_node_drained_takes_nothing_new_until_undrained(olga):
    node = lifecycle.drain(work.node(), by=olga)
    liveness.silent_nodes(now())
    drained = Node.objects.get().state
    liveness.silent_nodes(now() + timedelta(minutes=11))
    Node.objects.update(heartbeat_at=now())
    liveness.silent_nodes(now())

    assert (drained, Node.objects.get().state) == ("draining", "draining")  # a silence does not undo the wish
    assert lifecycle.undrain(node, by=olga).state == "live"
    assert set(node.events.values_list("event", flat=True)) == {"drained", "lost", "undrained"}


def test_node_is_removed_only_when_nothing_runs_on_it(alice, cluster, olga):
    node, job = work.node(), work.job(alice, cluster, name="alices run", state="running")
    work.hold(job, node.devices.get())

    with pytest.raises(lifecycle.StillInUse, match="alices run"):
        lifecycle.remove(node, by=olga)
    assert Node.objects.get().state == "live"  # the refusal wrote nothing

    job.attempts.get().allocations.update(released_at=now())
    assert lifecycle.remove(node, by=olga).state == "removed"
    liveness.silent_nodes(now())
    assert Node.objects.get().state == "removed"


def test_agent_of_a_removed_node_ends_with_a_sentence(monkeypatch):
    monkeypatch.setattr(env, "NODE_JOINED", True)
    monkeypatch.setattr("workers.execution.agent.loop.time.sleep", lambda _s: None)
    agent = Agent("n1")
    agent.register()
    lifecycle.remove(Node.objects.get())

    agent.run(lambda: False)

    assert "removed" in agent.refusal


def test_agent_does_not_take_another_machines_name(monkeypatch):
    Node.objects.create(name="n1", machine="f" * 64)
    monkeypatch.setattr("workers.execution.agent.loop.time.sleep", lambda _s: None)
    agent = Agent("n1")

    agent.run(lambda: False)

    assert "Another node is named n1." in agent.refusal


def test_node_pages_and_api_obey_the_role(over_tcp, as_olga, as_alice):
    node = work.node()
    act, join, api = f"/cluster/nodes/{node.pk}/do/drain/", "/cluster/join/", f"/api/v1/nodes/{node.pk}/drain/"
    hers, his = as_olga, as_alice

    page = hers.post(join)

    assert "manage.py join --server http://testserver --token join_" in page.content.decode()
    assert hers.get(join).content.decode().count("join_") >= 1  # the list shows its beginning only
    assert [his.post(url).status_code for url in (act, join, api)] == [403, 403, 403]
    assert his.get(f"/cluster/nodes/{node.pk}/").status_code == 200
    assert hers.post(act).status_code == 302
    assert Node.objects.get().drain
    assert "Accepts no new jobs." in hers.get(f"/cluster/nodes/{node.pk}/").content.decode()
    assert hers.post(api.replace("drain", "undrain")).json()["state"] == "live"


@pytest.mark.parametrize(("written", "content"), [(b"text", "t\u00e9xt"), (b"\xff\xfe", "text")])
def test_j01_node_registration_refuses_a_probe_that_is_no_plain_text(
    over_tcp, machine, client, settings, written, content
):
    machine(lifecycle.make_token()[1])
    (settings.DATA_ROOT / lifecycle.PROBES / ("d" * 32)).write_bytes(written)
    body = {"name": "node2", "machine": "a" * 64, "probe": "d" * 32, "content": content}

    answer = client.post("/api/v1/nodes/probe/", body, content_type="application/json")

    assert (answer.status_code, answer.json()["code"]) == (409, "data_root_differs")


def test_node_registration_follows_no_link_where_the_answer_goes(
    over_tcp, machine, client, settings, tmp_path, monkeypatch
):
    monkeypatch.setattr(inner_port, "answers", lambda address, port: True)
    machine(lifecycle.make_token()[1])
    folder, victim = settings.DATA_ROOT / lifecycle.PROBES, tmp_path / "victim"
    victim.write_text("mine")
    (folder / ("e" * 32)).write_text("text")
    (folder / f"{'e' * 32}.answer").symlink_to(victim)
    body = {"name": "node2", "machine": "a" * 64, "probe": "e" * 32, "content": "text"}

    answer = client.post("/api/v1/nodes/probe/", body, content_type="application/json")

    assert answer.status_code == 200
    assert victim.read_text() == "mine"
    assert not (folder / f"{'e' * 32}.answer").is_symlink()


@pytest.mark.parametrize("address", ["10.0.0.2:6379/?x=", "a b", "user@10.0.0.2", "10.0.0.2\nAIP_X=1", "../x"])
def test_node_registration_takes_an_address_and_nothing_more(over_tcp, client, settings, address):
    _row, secret = lifecycle.make_token()
    folder = settings.DATA_ROOT / lifecycle.PROBES
    folder.mkdir(exist_ok=True)
    (folder / ("f" * 32)).write_text("text")
    body = {"token": secret, "name": "n", "machine": "a" * 64, "address": address}

    answer = client.post(JOIN, body | {"probe": "f" * 32, "content": "text"}, content_type="application/json")

    assert answer.status_code == 400
    assert not Node.objects.filter(name="n").exists()


def test_node_token_revocation_is_in_the_audit_trail(over_tcp, as_olga):
    row, _secret = lifecycle.make_token()

    as_olga.delete(f"/api/v1/nodes/tokens/{row.pk}/")

    assert AuditEntry.objects.get(verb="token_revoked").actor == "olga"
