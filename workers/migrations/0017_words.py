from django.db import migrations, models

STATES = {"frozen": "paused"}
DESIRED = {"freeze": "pause"}
EVENTS = {"froze": "paused", "thawed": "resumed"} | {
    f"{what}_asked": f"{what}_requested"
    for what in ("pause", "continue", "stop", "finish", "release", "room", "time")
}

STATE_CHOICES = [('queued', 'Queued'), ('assigned', 'Assigned'), ('starting', 'Starting'), ('running', 'Running'), ('paused', 'Paused'), ('stopping', 'Stopping'), ('finishing', 'Finishing'), ('preempting', 'Making room'), ('succeeded', 'Completed'), ('finished_early', 'Finished early'), ('failed', 'Failed'), ('stopped', 'Stopped'), ('lost', 'Lost')]
DESIRED_CHOICES = [('run', 'Run'), ('pause', 'Pause'), ('stop', 'Stop'), ('finish', 'Finish now'), ('release', 'Make room'), ('evict', 'Leave its cards for a while')]


def rename(apps, old_to_new):
    jobs, attempts, events = (apps.get_model("workers", name) for name in ("Job", "Attempt", "JobEvent"))
    for rows, column, words in (
        (jobs, "state", old_to_new(STATES)),
        (jobs, "desired", old_to_new(DESIRED)),
        (attempts, "state", old_to_new(STATES)),
        (events, "state", old_to_new(STATES)),
        (events, "event", old_to_new(EVENTS)),
    ):
        for old, new in words.items():
            rows.objects.filter(**{column: old}).update(**{column: new})


def forwards(apps, schema_editor):
    rename(apps, lambda words: words)


def backwards(apps, schema_editor):
    rename(apps, lambda words: {new: old for old, new in words.items()})


class Migration(migrations.Migration):
    """Rows use the words of the code: paused, requested, evicted."""

    dependencies = [("workers", "0016_evictions")]

    operations = [
        migrations.AlterField("attempt", "state", models.CharField(choices=STATE_CHOICES, default="assigned", editable=False, max_length=16)),
        migrations.AlterField("job", "state", models.CharField(choices=STATE_CHOICES, default="queued", editable=False, max_length=16)),
        migrations.AlterField("job", "desired", models.CharField(choices=DESIRED_CHOICES, default="run", editable=False, max_length=8)),
        migrations.RunPython(forwards, backwards),
        migrations.RenameField("timerequest", "asked_by", "requested_by"),
        migrations.RenameField("timerequest", "asked_at", "requested_at"),
        migrations.RenameField("attempt", "away_s", "evicted_s"),
        migrations.RenameField("attempt", "back_at", "returned_at"),
        migrations.RenameField("attempt", "kept_why", "eviction_refusal"),
        migrations.AlterField(
            "jobevent", "job", models.ForeignKey("workers.job", models.deletion.CASCADE, related_name="events")
        ),
        migrations.AlterField(
            "nodeevent", "node", models.ForeignKey("workers.node", models.deletion.CASCADE, related_name="events")
        ),
        migrations.AlterField(
            "nodeevent",
            "device",
            models.ForeignKey("workers.device", models.deletion.CASCADE, blank=True, null=True, related_name="events"),
        ),
    ]
