"""A migration whose last step fails: there are customers with several purchases."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models
from django.db.models.functions import Upper


def change_rows(apps: Any, _: Any) -> None:
    apps.get_model("shop", "Purchase").objects.update(half=models.F("id") / 2, code=Upper("code"))


class Migration(migrations.Migration):
    dependencies = [("shop", "change")]
    operations = [
        migrations.AddField("purchase", "half", models.IntegerField(null=True)),
        migrations.RunPython(change_rows),
        migrations.AddIndex("purchase", models.Index(fields=["half"], name="purchase_half")),
        migrations.AlterField("purchase", "amount", models.TextField()),
        migrations.RemoveConstraint("purchase", "purchase_code"),
        migrations.AddConstraint("purchase", models.UniqueConstraint(fields=["customer"], name="purchase_once")),
    ]
