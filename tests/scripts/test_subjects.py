"""The subjects of new commits have at most 72 characters."""

import os
import subprocess
from pathlib import Path

import pytest

from scripts.error_texts import CHECKOUT

NAMES = {
    f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}


def git(folder: Path, *arguments: str) -> None:
    environment = {**os.environ, **NAMES, "GIT_CONFIG_GLOBAL": os.devnull}
    subprocess.run(
        ["git", *arguments], cwd=folder, env=environment, check=True, capture_output=True
    )


def code_of_subjects(folder: Path, *arguments: str) -> int:
    script = str(CHECKOUT / "scripts" / "subjects.sh")
    return subprocess.run([script, *arguments], cwd=folder, capture_output=True).returncode


@pytest.fixture
def repository(disk_path: Path) -> Path:
    git(disk_path, "init", "--quiet")
    return disk_path


@pytest.mark.parametrize(("length", "code"), [(72, 0), (73, 1)])
def test_the_newest_subject_is_measured(repository: Path, length: int, code: int) -> None:
    git(repository, "commit", "--quiet", "--allow-empty", "--message", "a" * length)
    assert code_of_subjects(repository) == code


def test_all_subjects_of_a_range_are_measured(repository: Path) -> None:
    for subject in ("first", "b" * 73, "last"):
        git(repository, "commit", "--quiet", "--allow-empty", "--message", subject)
    assert code_of_subjects(repository) == 0
    assert code_of_subjects(repository, "HEAD~2..HEAD") == 1
    assert code_of_subjects(repository, "HEAD~1..HEAD") == 0
