"""Messages after a commit: one by one, or together, and none of what was rolled back."""

import contextlib

import pytest
from django.db import transaction

from aiplatform.lib import after_commit

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def sent():
    return []


@pytest.fixture
def send(sent):
    def one(item, destination="queue"):
        after_commit.send(destination, item, lambda items: sent.append((destination, list(items))))

    return one


def test_after_commit_sends_each_message_when_its_transaction_commits(send, sent):
    with transaction.atomic():
        send(1)
        send(2)
        assert sent == []

    assert sent == [("queue", [1]), ("queue", [2])]


def test_after_commit_collects_one_message_for_each_destination_without_repeating_items(send, sent):
    with after_commit.collected():
        for item in (1, 2, 1):
            with transaction.atomic():
                send(item)
        send(3, "other")
        assert sent == []

    assert sent == [("queue", [1, 2]), ("other", [3])]


def test_after_commit_leaves_out_what_was_rolled_back(send, sent):
    with after_commit.collected(), transaction.atomic():
        send(1)
        with contextlib.suppress(ZeroDivisionError), transaction.atomic():
            send(2)
            raise ZeroDivisionError

    assert sent == [("queue", [1])]


def test_after_commit_sends_what_was_committed_before_an_error_and_an_inner_block_waits_for_the_outer_one(send, sent):
    with contextlib.suppress(ZeroDivisionError), after_commit.collected():
        with after_commit.collected():
            send(1)
        assert sent == []
        raise ZeroDivisionError

    assert sent == [("queue", [1])]


def test_after_commit_goes_on_where_one_destination_cannot_be_reached(send, sent, caplog):
    def unreachable(_items):
        raise ConnectionError

    with after_commit.collected():
        after_commit.send("away", 1, unreachable)
        send(2)

    assert sent == [("queue", [2])]
    assert "messages to away were not sent" in caplog.text
