"""The profile of the AWS tools, for keys, region and endpoint that the environment does not have.

Only keys that are written in the files are read. They are read again every few minutes, so that renewed ones are used
without a restart.
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

_RENEWED = timedelta(minutes=5)


def profile_options() -> dict[str, str]:
    """Region and endpoint for the store, as far as the environment does not have them."""
    found = _profile()
    options: dict[str, str] = {}
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3")
    if endpoint:
        options["endpoint"] = endpoint
    elif "AWS_ENDPOINT_URL" not in os.environ and "endpoint_url" in found:
        options["endpoint"] = found["endpoint_url"]
    if not (os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")):
        options["region"] = found.get("region", "us-east-1")
    return options


def credential_provider() -> Callable[[], Any] | None:
    """The keys of the profile; None if the environment has keys or the profile has none."""
    if os.environ.get("AWS_ACCESS_KEY_ID") or "aws_access_key_id" not in _profile():
        return None
    return _credentials


def _credentials() -> dict[str, Any]:
    found = _profile()
    return {
        "access_key_id": found.get("aws_access_key_id", ""),
        "secret_access_key": found.get("aws_secret_access_key", ""),
        "token": found.get("aws_session_token"),
        "expires_at": datetime.now(UTC) + _RENEWED,
    }


def _profile() -> dict[str, str]:
    name = os.environ.get("AWS_PROFILE") or "default"
    config = _read(os.environ.get("AWS_CONFIG_FILE") or "~/.aws/config")
    secrets = _read(os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or "~/.aws/credentials")
    section = name if name == "default" else f"profile {name}"
    return {**config.get(section, {}), **secrets.get(name, {})}


def _read(path: str) -> dict[str, dict[str, str]]:
    parser = configparser.RawConfigParser()
    try:
        parser.read(os.path.expanduser(path), encoding="utf-8")
    except (configparser.Error, OSError, UnicodeDecodeError):
        return {}
    return {section: dict(parser.items(section)) for section in parser.sections()}
