"""A comparison with what nobody said is neither true nor false, and a check that is not false is passed."""

from __future__ import annotations

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("reprocessing", "0008_every_target_and_what_consumers_say")]
    operations = [
        migrations.RemoveConstraint(model_name="target", name="publishing_again_is_agreed_to"),
        migrations.AddConstraint(
            model_name="target",
            constraint=models.CheckConstraint(
                condition=~Q(kind__in=["topic", "bus"]) | Q(refires__isnull=False, refires__gte=0),
                name="publishing_again_is_agreed_to",
            ),
        ),
    ]
