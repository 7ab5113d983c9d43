"""Paths outside of the allowed roots are refused, however they are spelled."""

from pathlib import Path

import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.procedures.declaring.permissions import Permissions


def test_paths_lead_where_they_lead(tmp_path: Path) -> None:
    lake, other = tmp_path / "lake", tmp_path / "other"
    lake.mkdir()
    other.mkdir()
    (lake / "way_out").symlink_to(other)
    permissions = Permissions(allowed_roots=(str(lake), "s3://bucket/lake"))
    for path in (lake, lake / "orders", f"file://{lake}/orders", "s3://bucket/lake/orders/"):
        permissions.check_path(str(path))
    for path in (
        other,
        lake / ".." / "other",
        lake / "way_out" / "orders",
        f"{lake}_2/orders",
        "s3://bucket/lake2",
        "s3://bucket/lake/../secret",
        "s3a://bucket/lake/orders",
    ):
        with pytest.raises(InvalidRequest, match="may not use"):
            permissions.check_path(str(path))
