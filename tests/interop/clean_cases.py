"""Shapes of tables and settings for cleans that Java judges."""

from dataclasses import replace

from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.transaction.state.context import Context
from tests.writing.shapes import Shape

RETAINED = {"hoodie.clean.commits.retained": 1}
SHAPES = (Shape("cow"), Shape("mor", index="RECORD_INDEX"))


def cleaning(context: Context) -> Context:
    return replace(context, settings=Settings.of(arguments=RETAINED))
