"""Captured changes that can be compared: Java spells one image in two ways.

It takes some from logs and puts some together, with meta columns and without nulls.
"""

import json
from collections.abc import Iterable, Mapping

from tests.canonical import Json, Row


def images_of(rows: Iterable[Mapping[str, Json]]) -> list[Row]:
    """Changes with their images as objects of the columns that hold something."""
    return [{**row, "before": _image(row["before"]), "after": _image(row["after"])} for row in rows]


def _image(text: Json) -> Json:
    image = None if text is None else json.loads(str(text))
    if image is None:
        return None
    return {
        name: value
        for name, value in image.items()
        if value is not None and not name.startswith("_hoodie_")
    }
