"""File names: what the name of a base or log file tells."""

from dataclasses import dataclass, field

PARTITION_METADATA = ".hoodie_partition_metadata"
BASE_EXTENSIONS = frozenset({"parquet", "hfile", "orc", "lance"})
CDC_SUFFIX = ".cdc"


@dataclass(frozen=True, slots=True)
class BaseFile:
    """A base file; its instant is the requested time of the write that made it."""

    name: str
    file_id: str
    write_token: str
    instant: str
    extension: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class LogFile:
    """A log file; its instant is its own delta commit, in version 6 that of its base file."""

    name: str
    file_id: str
    instant: str
    version: int
    write_token: str
    size_bytes: int
    is_cdc: bool = False
    # So many bytes are known to come from completed writes; what lies behind them may not.
    recorded_bytes: int = field(default=0, compare=False)


DataFile = BaseFile | LogFile


def parse_file_name(name: str, size_bytes: int) -> DataFile | None:
    """The data file a name stands for; None for names that are none of the table's data files."""
    return _parse_log(name, size_bytes) if name.startswith(".") else _parse_base(name, size_bytes)


def group_in_name(name: str) -> tuple[str, bool]:
    """The file id in the name of a data file, and whether it is a log; cheap, and unchecked."""
    if name.startswith("."):
        return name[1:].partition(".log.")[0].rpartition("_")[0], True
    return name.partition("_")[0], False


def _parse_base(name: str, size_bytes: int) -> BaseFile | None:
    stem, _, extension = name.rpartition(".")
    if extension not in BASE_EXTENSIONS:
        return None
    parts = stem.split("_")
    if len(parts) != 3 or not parts[0] or not parts[2].isdigit():
        return None
    return BaseFile(name, parts[0], parts[1], parts[2], extension, size_bytes)


def _parse_log(name: str, size_bytes: int) -> LogFile | None:
    head, separator, tail = name[1:].partition(".log.")
    if not separator:
        return None
    file_id, _, instant = head.rpartition("_")
    is_cdc = tail.endswith(CDC_SUFFIX)
    version, _, token = tail.removesuffix(CDC_SUFFIX).partition("_")
    if not file_id or not version.isdigit() or not _is_token(token):
        return None
    return LogFile(name, file_id, instant, int(version), token, size_bytes, is_cdc)


def _is_token(token: str) -> bool:
    # Very old files have no token; a Hadoop checksum file ends in `.crc` and must not pass.
    return not token or all(part.isdigit() for part in token.split("-"))


def log_order(log: LogFile) -> tuple[str, int, tuple[int, ...], bool]:
    """The order in which the log files of a slice are read."""
    token = tuple(int(part) for part in log.write_token.split("-")) if log.write_token else ()
    return log.instant, log.version, token, log.is_cdc
