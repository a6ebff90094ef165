"""Sentences that earlier versions wrote, in English or Chinese, become codes and facts; others are kept as they stand."""

from django.db import migrations

from workers.migrations._stored_sentences import recognised

AT_ONCE = 1000
COLUMNS = (
    ("Job", "sentence", "message"),
    ("Attempt", "sentence", "message"),
    ("JobEvent", "sentence", "message"),
    ("NodeEvent", "sentence", "message"),
    ("Device", "health_note", "health_message"),
)
STORAGE = (("Storage of ", ""), ("", " 的存储"))


def convert(apps, schema_editor):
    for model, old, new in COLUMNS:
        _each(apps.get_model("workers", model).objects.exclude(**{old: ""}).only("pk", old), [new], _column(old, new))
    for model in ("Notification", "Delivery"):
        _each(apps.get_model("accounts", model).objects.all(), ["title", "text"], _told)
    _each(apps.get_model("workers", "Node").objects.exclude(evict_proof={}), ["evict_proof"], _proof)
    _each(apps.get_model("workers", "Alarm").objects.all(), ["facts", "subject"], _alarm)
    _each(apps.get_model("workers", "AlarmSilence").objects.exclude(subject=""), ["subject"], _silence)


def _each(rows, columns, change):
    waiting = []
    for row in rows.order_by("pk").iterator(chunk_size=AT_ONCE):
        change(row)
        waiting.append(row)
        if len(waiting) == AT_ONCE:
            rows.model.objects.bulk_update(waiting, columns)
            waiting = []
    rows.model.objects.bulk_update(waiting, columns)


def _column(old, new):
    return lambda row: setattr(row, new, recognised(getattr(row, old)))


def _told(row):
    for column in ("title", "text"):
        kept = getattr(row, column)
        if kept.code == "text":
            setattr(row, column, recognised(kept.facts["text"]))


def _proof(row):
    proof = dict(row.evict_proof)
    if "sentence" in proof:
        said = proof.pop("sentence")
        failed = {"code": "node.eviction_not_proven", "facts": {"why": said}}
        proof["message"] = recognised(said) if proof.get("ok") else failed
        row.evict_proof = proof


def _alarm(row):
    if isinstance(row.facts, dict) and isinstance(row.facts.get("note"), str):
        row.facts = {**row.facts, "note": recognised(row.facts["note"])}
    _silence(row)


def _silence(row):
    """Alarms of storage name the person now; the text around it belongs to the rule."""
    for before, after in STORAGE:
        if row.rule_id and row.rule.key == "storage_quota" and row.subject.startswith(before) and row.subject.endswith(after):
            row.subject = row.subject.removeprefix(before).removesuffix(after)
            return


class Migration(migrations.Migration):
    dependencies = [("accounts", "0018_sentences_gone"), ("workers", "0018_messages")]

    operations = [migrations.RunPython(convert, migrations.RunPython.noop)]
