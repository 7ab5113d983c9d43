"""Syntax errors: where a statement of ours stops making sense, and what was to stand there."""

from collections.abc import Mapping


class StatementError(Exception):
    """A statement that can't be parsed; Spark shows it with its own pointer at the word."""

    def __init__(self, statement: str, offset: int, word: str, hint: str) -> None:
        before = statement[:offset]
        self.parts: Mapping[str, object] = {
            "statement": statement,
            "line": before.count("\n") + 1,
            "position": offset - (before.rfind("\n") + 1),
            "word": f"'{word}'" if word else "end of input",
            "hint": hint,
        }
        super().__init__(hint)
