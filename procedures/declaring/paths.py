"""Paths as rows show them."""


def joined(partition: str, name: str) -> str:
    """The path of a file below the table; a table without partitions has its files at the top."""
    return f"{partition}/{name}" if partition else name
