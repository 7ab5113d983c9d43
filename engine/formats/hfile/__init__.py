"""HFiles: sorted keys and values in blocks, the base file format of metadata tables."""

from lakewarden.engine.formats.hfile.cache import BlockCache
from lakewarden.engine.formats.hfile.cells import Entries
from lakewarden.engine.formats.hfile.reader import HFile
from lakewarden.engine.formats.hfile.writer import HFileWriter, write_hfile

__all__ = ["BlockCache", "Entries", "HFile", "HFileWriter", "write_hfile"]
