"""Say of every image of older versions what stands on it, and of its classes in which split they are."""

from django.db import migrations
from django.db.models import Exists, OuterRef, Subquery

UNSEEN, EMPTY, OBJECTS = 0, 1, 2
AT_ONCE = 2000


def count(apps, schema_editor):
    asset_class = apps.get_model("datasets", "AssetClass")
    assets = apps.get_model("datasets", "Asset").objects
    marks = asset_class.objects.filter(asset=OuterRef("pk"))
    assets.filter(version__task="detection").update(content=EMPTY)
    assets.filter(Exists(marks)).update(content=OBJECTS, object_count=1)
    asset_class.objects.update(split=Subquery(assets.filter(pk=OuterRef("asset")).values("split")[:1]))
    rows = assets.filter(content=OBJECTS, version__task="detection").order_by("pk").only("shapes")
    batch = []
    for row in rows.iterator(chunk_size=AT_ONCE):
        row.object_count = len(row.shapes)  # parts: what older rows know
        batch.append(row)
        if len(batch) == AT_ONCE:
            assets.bulk_update(batch, ["object_count"])
            batch = []
    assets.bulk_update(batch, ["object_count"])


class Migration(migrations.Migration):
    dependencies = [("datasets", "0006_figures_and_filters")]

    operations = [migrations.RunPython(count, migrations.RunPython.noop, elidable=True)]
