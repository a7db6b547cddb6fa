"""Addresses of object stores: what cannot be one is refused before any request."""

import pytest

from seachange import errors
from seachange.runtime.location import find_location


@pytest.mark.parametrize(
    "url",
    [
        "s3://bucket/a b",
        "s3://bucket/ümlaut/100%/[x]{y}",
        "s3://Bucket_1.example/a",
        "abfs://$web@account.dfs.core.windows.net/a",
        "abfs://container/a",
        f"s3://bucket/{'x' * 900}",
    ],
)
def test_odd_prefixes_are_taken(url: str):
    assert str(find_location(url)) == url


@pytest.mark.parametrize(
    ("url", "detail"),
    [
        ("s3://no bucket/a", "name of a bucket"),
        ("s3://bücket/a", "name of a bucket"),
        ("s3://bucket:9000/a", "name of a bucket"),
        ("abfs://con tainer@account.dfs.core.windows.net/a", "name of a bucket"),
        ("s3://bucket/a\nb", "cannot be printed"),
        ("s3://bucket/a\0b", "cannot be printed"),
        (f"s3://bucket/{'ü' * 451}", "more than 900 bytes"),
        ("s3://bucket/../b", "empty part"),
        ("s3://bucket/a?version=1", "scheme://bucket/prefix"),
        ("s3://key:secret@bucket/a", "contains credentials"),
    ],
)
def test_what_is_no_address_is_refused(url: str, detail: str):
    with pytest.raises(errors.InvalidStore, match=detail) as caught:
        find_location(url)
    assert caught.value.sqlstate == "22023"
    assert "secret" not in str(caught.value)
