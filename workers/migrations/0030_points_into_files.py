"""Points move from rows into files, and a row for each curve says what they amount to."""

from itertools import groupby, islice

from django.db import migrations

from workers.jobs.output import point_files

AT_ONCE = 50_000


def move(apps, _editor):
    """Write the points of each curve in the order in which they came; done twice it does the same."""
    attempts = apps.get_model("workers", "Attempt").objects
    points = apps.get_model("workers", "MetricPoint").objects
    curve = apps.get_model("workers", "Curve")
    have = points.order_by("attempt").values_list("attempt", flat=True).distinct()
    for attempt in attempts.filter(pk__in=have).iterator():
        own = points.filter(attempt=attempt)
        rows = own.order_by("key", "id").values_list("key", "step", "value", "at").iterator(AT_ONCE)
        made = []
        with point_files.alone(attempt.job_id, attempt.number):
            for key, each in groupby(rows, lambda row: row[0]):
                file, found = point_files.path(attempt.job_id, attempt.number, key), None
                while part := list(islice(each, AT_ONCE)):
                    found = found or curve(
                        attempt=attempt, key=key, count=0, lowest=part[0][2], lowest_step=part[0][1],
                        highest=part[0][2], highest_step=part[0][1],
                    )  # fmt: skip
                    point_files.write(file, found.count, ((step, value, at.timestamp()) for _, step, value, at in part))
                    for _key, step, value, _at in part:
                        if value < found.lowest:
                            found.lowest, found.lowest_step = value, step
                        if value > found.highest:
                            found.highest, found.highest_step = value, step
                    found.count += len(part)
                    _key, found.step, found.value, found.at = part[-1]
                made.append(found)
        curve.objects.filter(attempt=attempt).delete()
        curve.objects.bulk_create(made, batch_size=100)
        newest = own.exclude(key__startswith="system/").order_by("-id").values_list("step", flat=True).first()
        attempts.filter(pk=attempt.pk).update(metrics_step=newest or 0)


class Migration(migrations.Migration):
    dependencies = [("workers", "0029_curves")]
    operations = [migrations.RunPython(move)]
