"""The registry decides which kinds of shapes there are, and a kind whether a shape may cover nothing."""

import datasets.shapes
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('annotation', '0001_squashed_0002_roles_and_review'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='shape',
            name='shape_covers_something',
        ),
        migrations.AlterField(
            model_name='labelclass',
            name='shape',
            field=models.CharField(choices=datasets.shapes.choices, default='polygon', max_length=20, verbose_name='drawn as'),
        ),
        migrations.AlterField(
            model_name='shape',
            name='kind',
            field=models.CharField(choices=datasets.shapes.choices, max_length=20),
        ),
        migrations.AddConstraint(
            model_name='shape',
            constraint=models.CheckConstraint(condition=models.Q(('area__gte', 0)), name='shape_area_is_not_negative'),
        ),
    ]
