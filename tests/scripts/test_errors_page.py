"""The page of errors lists them all, and each error says what, why and what now, in few words."""

from collections.abc import Iterable, Iterator

import pytest

from lakewarden.engine.kernel.errors import REPORT, Defect
from lakewarden.sql_ext.session.answers import OF_CODE
from scripts.error_texts import CHECKOUT, ErrorText, Module, error_texts
from scripts.errors_page import page
from scripts.java_texts import java_texts

PAGE = CHECKOUT / "docs" / "reference" / "errors.md"
WORDS_MAX = 45

pytestmark = pytest.mark.xdist_group("tidy")


def faults(texts: Iterable[ErrorText]) -> Iterator[str]:
    """What is wrong with the texts of errors, as far as the code tells."""
    for text in texts:
        if "{" in text.code:
            yield f"{text.place}: the code {text.code} is known to a run only"
        if text.missing_parts:
            yield f"{text.place}: {text.code} does not say {', '.join(text.missing_parts)}"
        if text.words_max > WORDS_MAX:
            yield f"{text.place}: {text.code} has {text.words_max} words"


def in_code(text: str) -> tuple[ErrorText, ...]:
    return error_texts([Module("engine/planted.py", text)])


@pytest.fixture(scope="module")
def texts() -> tuple[ErrorText, ...]:
    """Every error of the product; reading them takes seconds."""
    return (*error_texts(), *java_texts())


def test_the_page_is_what_the_code_makes() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m scripts.errors_page renews it"


def test_every_code_has_a_section(texts: tuple[ErrorText, ...]) -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    headings = {line.removeprefix("### ") for line in lines if line.startswith("### ")}
    assert headings == {text.code for text in texts}


def test_every_error_says_what_why_and_what_now_in_few_words(
    texts: tuple[ErrorText, ...],
) -> None:
    assert not list(faults(texts))


def test_codes_with_a_sql_state_exist(texts: tuple[ErrorText, ...]) -> None:
    assert OF_CODE.keys() <= {text.code for text in texts}


def test_an_error_without_a_part_is_seen() -> None:
    planted = in_code("Conflict('lost', what='It is lost.', now='Try again.')")
    assert list(faults(planted)) == ["engine/planted.py:00001: lost does not say why"]


def test_an_error_that_is_too_long_is_seen() -> None:
    long = "word " * WORDS_MAX
    planted = in_code(f"Conflict('lost', what='{long}', why='So.', now='Wait.')")
    assert list(faults(planted)) == ["engine/planted.py:00001: lost has 47 words"]


def test_a_code_that_only_a_run_knows_is_seen() -> None:
    planted = in_code("Conflict(codes[0], what='It is lost.', why='So.', now='Wait.')")
    assert "is known to a run only" in next(faults(planted))


def test_a_text_is_followed_to_the_calls_of_a_function() -> None:
    planted = in_code(
        "def _lost(code, why, now='Wait.'):\n"
        "    return Conflict(f'lost_{code}', what=f'{thing.name!r} is lost.', why=why, now=now)\n"
        "def one():\n"
        "    raise _lost('lock', 'Another one has it.')\n"
        "def other():\n"
        "    why = 'It expired.' if late else 'It broke.'\n"
        "    raise _lost('claim', why, _NOW)\n"
        "_NOW = 'Try ' + 'again.'\n"
    )
    lock, claim = sorted(planted, key=lambda one: one.code, reverse=True)
    assert (lock.code, lock.parts) == (
        "lost_lock",
        (("{thing} is lost.",), ("Another one has it.",), ("Wait.",)),
    )
    assert (claim.code, claim.why, claim.now) == (
        "lost_claim",
        ("It expired.", "It broke."),
        ("Try again.",),
    )


def test_a_defect_asks_for_a_report() -> None:
    assert Defect("law_broken", what="It broke.", why="So.").now == REPORT
    (planted,) = in_code("Defect('law_broken', what='It broke.', why='So.')")
    assert planted.now == (REPORT,)
