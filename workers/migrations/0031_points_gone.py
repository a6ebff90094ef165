from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("workers", "0030_points_into_files")]
    operations = [migrations.DeleteModel(name="MetricPoint")]
