"""The settings of a session."""

import datetime as dt

import pytest

from seachange import errors
from seachange.errors import InvalidSetting, UndefinedObject
from seachange.sql.settings.session_settings import SessionSettings
from seachange.sql.settings.setting_checks import parse_as_of, parse_duration_ms
from seachange.sql.settings.settings import SETTINGS


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=lambda s: s.name)
def test_defaults_are_values_that_the_setting_can_have(setting):
    assert setting.check(setting.default) == setting.default
    assert setting.description.endswith(".")


def test_names_are_known():
    settings = SessionSettings()
    for use in (settings.get, lambda name: settings.set(name, "x"), settings.reset):
        with pytest.raises(UndefinedObject):
            use("nope")


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("application_name", "x", "x"),
        ("default_transaction_isolation", "REPEATABLE  READ", "repeatable read"),
        ("client_encoding", "utf-8", "UTF8"),
        ("timezone", "utc", "UTC"),
        ("timezone", "europe/berlin", "Europe/Berlin"),
        ("timezone", "-7", "Etc/GMT+7"),
        ("timezone", "2", "Etc/GMT-2"),
        ("seachange.as_of", " 5 ", "5"),
        ("statement_timeout", "2 min", "2 min"),
        ("application_name", None, ""),
    ],
)
def test_setting_shows_its_value_as_postgresql_does(name, value, shown):
    settings = SessionSettings()
    settings.set(name, value)
    assert settings.get(name) == shown


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("default_transaction_isolation", "chaos"),
        ("client_encoding", "latin1"),
        ("timezone", "Europe/Nowhere"),
        ("timezone", "+27:00"),
        ("timezone", "99"),
        ("timezone", "right/Europe/Berlin"),
        ("seachange.as_of", "yesterday"),
        ("seachange.retention", "3 moons"),
        ("statement_timeout", "-1"),
    ],
)
def test_values_that_cannot_be(name, value):
    with pytest.raises(InvalidSetting):
        SessionSettings().set(name, value)


def test_rollback_undoes_and_local_ends():
    settings = SessionSettings()
    settings.set("application_name", "before")
    settings.begin()
    settings.set("application_name", "within")
    settings.set("statement_timeout", "5", local=True)
    settings.end(committed=False)
    assert (settings.get("application_name"), settings.get("statement_timeout")) == ("before", "0")
    settings.begin()
    settings.set("application_name", "within")
    settings.set("application_name", "local", local=True)
    assert settings.get("application_name") == "local"
    settings.end(committed=True)
    assert settings.get("application_name") == "within"
    settings.reset(None)
    assert settings.get("application_name") == ""


def test_durations_are_read_with_their_units():
    assert [parse_duration_ms(text) for text in ("0", "250", "1s", "1.5 min", "2h", "1 day")] == [
        0, 250, 1_000, 90_000, 7_200_000, 86_400_000,
    ]  # fmt: skip


def test_as_of():
    assert parse_as_of("") is None
    assert parse_as_of("12") == 12
    assert parse_as_of("2024-02-09 01:00+01") == dt.datetime(2024, 2, 9, tzinfo=dt.UTC)


def test_a_server_of_spark_connect_is_no_master():
    with pytest.raises(errors.SparkUnavailable) as refused:
        SessionSettings().set("seachange.spark.master", "sc://host:15002")
    assert refused.value.sqlstate == "0A000"
    assert "seachange.spark.remote" in (refused.value.hint or "")


def test_a_master_is_no_server_of_spark_connect():
    with pytest.raises(errors.InvalidSetting):
        SessionSettings().set("seachange.spark.remote", "spark://host:7077")


def test_typed_values_follow_every_kind_of_change():
    settings = SessionSettings({"lock_timeout": "3s"})
    assert (settings.typed.lock_timeout_ms, settings.typed.role) == (3_000, None)
    before = settings.mark()
    settings.set("lock_timeout", "2 min")
    assert settings.typed.lock_timeout_ms == 120_000
    settings.begin()
    settings.set("lock_timeout", "5", local=True)
    settings.set("role", "ann")
    assert (settings.typed.lock_timeout_ms, settings.typed.role) == (5, "ann")
    settings.end(committed=False)
    assert (settings.typed.lock_timeout_ms, settings.typed.role) == (120_000, None)
    settings.restore(before)
    assert settings.typed.lock_timeout_ms == 3_000
    settings.begin_with("timezone", "europe/berlin")
    settings.set("timezone", "utc")
    settings.reset(None)
    assert settings.typed.timezone == "Europe/Berlin"
    settings.add_defaults({"lock_timeout": "1"})
    assert settings.typed.lock_timeout_ms == 1


def test_typed_values_are_parsed_once_per_change():
    settings = SessionSettings()
    typed = settings.typed
    assert settings.typed is typed
    settings.set("application_name", "x")
    assert settings.typed is not typed
