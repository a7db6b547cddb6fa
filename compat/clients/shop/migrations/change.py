"""An ordinary migration of tables with rows: columns, data, constraints, keys and a type, in one transaction."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models


def fill_region(apps: Any, _: Any) -> None:
    apps.get_model("shop", "Purchase").objects.annotate(odd=models.F("customer_id") % 2).filter(odd=0).update(
        region="us"
    )


def fill_level(apps: Any, _: Any) -> None:
    for customer in apps.get_model("shop", "Customer").objects.all():
        customer.level = customer.id % 3
        customer.save(update_fields=["level"])


class Migration(migrations.Migration):
    dependencies = [("shop", "initial")]
    operations = [
        migrations.AddField("purchase", "region", models.CharField(max_length=10, null=True, db_default="eu")),
        migrations.RunPython(fill_region),
        migrations.AlterField("purchase", "region", models.CharField(max_length=10, db_default="eu")),
        migrations.AddConstraint("purchase", models.UniqueConstraint(fields=["code"], name="purchase_code")),
        migrations.AlterField("purchase", "customer", models.ForeignKey("shop.Customer", models.CASCADE)),
        migrations.AlterField("purchase", "amount", models.DecimalField(max_digits=12, decimal_places=2)),
        migrations.AddField("customer", "level", models.IntegerField(null=True)),
        migrations.RunPython(fill_level),
        migrations.AlterField("customer", "level", models.IntegerField(db_default=0)),
    ]
