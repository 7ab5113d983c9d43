"""HFiles: sorted keys and values in blocks, the base file format of metadata tables."""

from lakewarden.engine.formats.hfile.blocks import BlockCache
from lakewarden.engine.formats.hfile.cells import HFileEntries
from lakewarden.engine.formats.hfile.reader import HFile
from lakewarden.engine.formats.hfile.writer import HFileWriter, write_hfile

__all__ = ["BlockCache", "HFile", "HFileEntries", "HFileWriter", "write_hfile"]
