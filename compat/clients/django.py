"""Django: the migrations of its own applications and of one made here, the ORM, and inspectdb."""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import django
from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.db import IntegrityError, connection, migrations, models, transaction
from django.test import override_settings

from compat.features import Check, Features, expect
from compat.load import expect_migrated, expect_nothing_left

feature = Features()
MIGRATIONS = "migrations_of_library"
# The shop is migrated by its own features.
MIGRATION_MODULES = {"library": MIGRATIONS, "shop": None}
SHOP = {**MIGRATION_MODULES, "shop": "compat.clients.shop.migrations"}
CONTRIBUTED = ("contenttypes", "auth", "sessions", "admin", "sites", "redirects", "flatpages")


def configure(url: str) -> None:
    parts = urlsplit(url)
    settings.configure(
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.postgresql",
                "NAME": parts.path[1:],
                "USER": parts.username,
                "PASSWORD": parts.password,
                "HOST": parts.hostname,
                "PORT": parts.port,
            }
        },
        INSTALLED_APPS=[
            *(f"django.contrib.{name}" for name in (*CONTRIBUTED, "postgres")),
            "compat.clients.library",
            "compat.clients.shop",
        ],
        MIGRATION_MODULES=MIGRATION_MODULES,
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        USE_TZ=True,
        SITE_ID=1,
        SECRET_KEY="of no use",
    )
    django.setup()


def checked(name: str) -> Callable[[Check], Check]:
    """A feature with a connection of its own, so that it does not depend on the others."""

    def add(check: Check) -> Check:
        def run(url: str) -> None:
            connection.close()
            check(url)

        feature(name)(run)
        return check

    return add


def model(name: str) -> Any:
    return apps.get_model("library", name)


@checked("migrate of its applications")
def migrate(url: str) -> None:
    call_command("migrate", verbosity=0, interactive=False)
    found = connection.introspection.table_names()
    expect({"auth_user", "django_session", "django_admin_log", "django_site"} <= set(found), True)
    call_command("migrate", verbosity=0, interactive=False)


@checked("migrate backwards")
def migrate_back(url: str) -> None:
    call_command("migrate", "flatpages", "zero", verbosity=0)
    call_command("migrate", "auth", "0009", verbosity=0)
    call_command("migrate", verbosity=0)


@checked("users, groups, permissions")
def users(url: str) -> None:
    from django.contrib.auth.models import Group, Permission, User  # noqa: PLC0415 - needs a configured Django

    user = User.objects.create_user("ann", "ann@example.com", "secret")
    group = Group.objects.create(name="readers")
    group.permissions.set(Permission.objects.filter(codename__startswith="view_"))
    user.groups.add(group)
    expect(User.objects.get(username="ann").check_password("secret"), True)
    expect(user.has_perm("auth.view_user"), True)
    expect(User.objects.filter(groups__permissions__codename="view_user").distinct().count(), 1)


@checked("makemigrations and migrate of an application")
def own_application(url: str) -> None:
    call_command("makemigrations", "library", verbosity=0)
    call_command("migrate", verbosity=0)
    found = connection.introspection.table_names()
    expect({"library_author", "library_book", "library_book_readers"} <= set(found), True)


@checked("schema editor: alter")
def alter(url: str) -> None:
    book = model("Book")
    pages = models.IntegerField(default=7)
    pages.set_attributes_from_name("pages")
    wider = models.BigIntegerField(default=7)
    wider.set_attributes_from_name("pages")
    title = models.CharField(max_length=200, db_index=True)
    title.set_attributes_from_name("title")
    with connection.schema_editor() as editor:
        editor.add_field(book, pages)
        editor.alter_field(book, pages, wider)
        editor.alter_field(book, book._meta.get_field("title"), title)
        editor.remove_field(book, wider)
        editor.alter_db_table(book, "library_book", "library_volume")
        editor.alter_db_table(book, "library_volume", "library_book")


@checked("ORM")
def orm(url: str) -> None:
    author_model = model("Author")
    book_model = model("Book")
    author = author_model.objects.create(name="Woolf")
    book_model.objects.bulk_create(
        [book_model(title=f"book {n}", price=Decimal(n) + 1, author=author, facts={"n": n}) for n in range(20)]
    )
    expect(book_model.objects.filter(price__gte=10).count(), 11)
    expect(book_model.objects.aggregate(total=models.Sum("price"))["total"], Decimal(210))
    expect(book_model.objects.filter(facts__n=3).get().title, "book 3")
    expect(book_model.objects.filter(title__icontains="BOOK 1").count(), 11)
    expect(book_model.objects.update(price=models.F("price") * 2), 20)
    ranked = book_model.objects.annotate(name=models.F("author__name")).order_by("-price").values_list("name", "price")
    expect(ranked[0], ("Woolf", Decimal("40.00")))
    expect(author_model.objects.annotate(n=models.Count("books")).get().n, 20)
    expect(book_model.objects.dates("at", "year").count(), 1)
    expect(author_model.objects.get_or_create(name="Woolf")[1], False)
    expect(author_model.objects.update_or_create(name="Kafka")[1], True)
    expect(author.delete()[0], 21)


@checked("bulk_create with conflicts")
def conflicts(url: str) -> None:
    author_model = model("Author")
    author_model.objects.all().delete()
    author_model.objects.create(name="Kafka")
    author_model.objects.bulk_create([author_model(name="Kafka"), author_model(name="Eco")], ignore_conflicts=True)
    expect(author_model.objects.count(), 2)
    author_model.objects.bulk_create(
        [author_model(name="Eco")], update_conflicts=True, unique_fields=["name"], update_fields=["name"]
    )
    expect(author_model.objects.count(), 2)


@checked("atomic, savepoints, select_for_update")
def atomic(url: str) -> None:
    author_model = model("Author")
    with transaction.atomic():
        author_model.objects.select_for_update().get(name="Eco")
        try:
            with transaction.atomic():
                author_model.objects.create(name="Eco")
        except IntegrityError:
            pass
        author_model.objects.create(name="Calvino")
    expect(author_model.objects.count(), 3)


@checked("inspectdb")
def inspectdb(url: str) -> None:
    out = io.StringIO()
    call_command("inspectdb", "library_book", "auth_user", stdout=out)
    text = out.getvalue()
    for line in (
        "author = models.ForeignKey('LibraryAuthor', models.DO_NOTHING)",
        "price = models.DecimalField(max_digits=8, decimal_places=2, blank=True, null=True)",
        "facts = models.JSONField()",
        "unique_together = (('author', 'title'),)",
        "username = models.CharField(unique=True, max_length=150)",
    ):
        expect((line, line in text), (line, True))


@checked("introspection of constraints")
def constraints(url: str) -> None:
    with connection.cursor() as cursor:
        found = connection.introspection.get_constraints(cursor, "library_book")
    expect(found["price_positive"]["check"], True)
    expect(found["title_once"]["columns"], ["author_id", "title"])
    expect((found["book_price"]["index"], found["book_price"]["orders"]), (True, ["DESC"]))


@checked("serverside iteration")
def iteration(url: str) -> None:
    author_model = model("Author")
    expect(len(list(author_model.objects.iterator(chunk_size=2))), 3)


@checked("sqlflush, sqlsequencereset, flush")
def flush(url: str) -> None:
    call_command("flush", verbosity=0, interactive=False)
    expect(apps.get_model("auth", "User").objects.count(), 0)


@checked("migrations that run Python and SQL")
def data_migrations(url: str) -> None:
    state = migrations.state.ProjectState()
    with connection.schema_editor() as editor:
        operation = migrations.RunSQL("insert into library_author (name) values ('Borges')")
        operation.database_forwards("library", editor, state, state)
    author_model = model("Author")
    expect(author_model.objects.filter(name="Borges").count(), 1)


@checked("migrate of tables with rows, under load")
def migrate_under_load(url: str) -> None:
    with override_settings(MIGRATION_MODULES=SHOP):
        call_command("migrate", "shop", "initial", verbosity=0)
        expect_migrated(url, lambda: call_command("migrate", "shop", "change", verbosity=0))


@checked("a migration that fails half-way leaves nothing, under load")
def failing_under_load(url: str) -> None:
    with override_settings(MIGRATION_MODULES=SHOP):
        expect_nothing_left(url, lambda: call_command("migrate", "shop", "failure", verbosity=0), IntegrityError)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / MIGRATIONS
        package.mkdir()
        (package / "__init__.py").touch()
        sys.path.append(folder)
        configure(sys.argv[1])
        feature.run()


if __name__ == "__main__":
    main()
