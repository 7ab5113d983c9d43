"""Rewriting: statements that Spark has no grammar for become calls of procedures."""


def rewritten(statement: str) -> str:
    """The statement as a call if it is one of ours; else as it is."""
    return statement
