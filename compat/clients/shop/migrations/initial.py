"""The tables that the writers of `compat.load` use."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    operations = [
        migrations.CreateModel(
            "Customer",
            [("id", models.IntegerField(primary_key=True)), ("visits", models.IntegerField())],
            {"db_table": "customer"},
        ),
        migrations.CreateModel(
            "Purchase",
            [
                ("id", models.BigIntegerField(primary_key=True)),
                ("customer", models.ForeignKey("shop.Customer", models.CASCADE, db_constraint=False, db_index=False)),
                ("code", models.TextField()),
                ("amount", models.IntegerField()),
            ],
            {"db_table": "purchase"},
        ),
    ]
