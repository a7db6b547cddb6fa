"""Fields, keys, constraints and indexes as applications use them."""

from __future__ import annotations

from django.db import models


class Author(models.Model):
    name = models.CharField(max_length=80, unique=True)


class Book(models.Model):
    title = models.TextField(db_index=True)
    price = models.DecimalField(max_digits=8, decimal_places=2, null=True)
    facts = models.JSONField(default=dict)
    at = models.DateTimeField(auto_now_add=True)
    author = models.ForeignKey(Author, on_delete=models.CASCADE, related_name="books")
    readers = models.ManyToManyField("auth.User")

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(price__gt=0), name="price_positive"),
            models.UniqueConstraint(fields=["author", "title"], name="title_once"),
        ]
        indexes = [models.Index(fields=["-price"], name="book_price", condition=models.Q(price__isnull=False))]
