"""Path names: text as a part of a path or of a file's name, escaped as Hudi escapes it."""

import re

# The characters that Hive, and Hudi after it, does not let into the name of a folder.
_UNSAFE = re.compile("[\x01-\x1f\x7f\"#%'*/:=?\\\\{\\[\\]^]")


def escape_path_name(text: str) -> str:
    """The text with every unsafe character as a percent sign and two hex digits."""
    return _UNSAFE.sub(lambda found: f"%{ord(found[0]):02X}", text)


def escape_file_id(text: str) -> str:
    """The text as a part of a file id, where dashes and underscores separate the parts."""
    return escape_path_name(text).replace("_", "%5F").replace("-", "%2D")
