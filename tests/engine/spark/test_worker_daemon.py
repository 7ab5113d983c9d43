"""Quicker workers: they begin otherwise, and write the same."""

from pathlib import Path

import pytest

import lakewarden
from lakewarden.sessions import WORKER_SETTINGS
from tests.engine.spark import tuned_writes
from tests.small_session import printed

pytestmark = pytest.mark.xdist_group("spark")


def test_a_session_with_the_settings_writes_with_workers_that_keep_what_they_read(
    tmp_path: Path,
) -> None:
    assert printed(tuned_writes.__file__, [str(tmp_path / "t")], tmp_path) == "40 ['keep_zips']"


def test_the_settings_are_handed_out_as_a_copy() -> None:
    lakewarden.spark_settings().clear()
    assert lakewarden.spark_settings() == dict(WORKER_SETTINGS)
