"""Protocols of fsspec: how to reach one, and what is known of its promises."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import metadata

import fsspec
from fsspec.core import url_to_fs
from fsspec.registry import known_implementations

from lakewarden.engine.kernel.errors import InvalidRequest, LakewardenError
from lakewarden.engine.storage.port import Location, failure, reason_of
from lakewarden.engine.storage.s3 import s3fs_options, without_hadoop

_WITH_PASSWORD = re.compile(r"[^/@]*:[^/@]*@")
# Names other engines use for a protocol fsspec knows.
_ALIASES = {"s3a": "s3", "s3n": "s3"}
# Stores without folders: making one is needless, and may even make a bucket.
_FLAT = frozenset({"s3", "gs", "gcs", "abfs", "abfss", "az", "oss", "oci"})
_EXTRAS = {"s3": "lakewarden[s3]"}
# How a whole file is read by one request. S3's client would ask for the size first, and put a large
# file together from ranges that may be of two versions of it.
_IN_ONE_PIECE: Mapping[str, Mapping[str, object]] = {"s3": {"max_concurrency": 1}}
_Needed = tuple[tuple[str, tuple[int, ...]], ...]
# The first versions whose `mode="create"` is one conditional request to the service. Older ones
# drop the condition silently and overwrite.
_CREATES_SINCE: Mapping[str, _Needed] = {
    "s3": (("s3fs", (2024, 12)), ("botocore", (1, 35, 21))),
    "gs": (("gcsfs", (2024, 12)),),
    "gcs": (("gcsfs", (2024, 12)),),
}
# Where a file can be replaced on condition of its version. S3's client drops silently what its
# botocore does not know of; other file systems of fsspec have no such call.
_REPLACES_SINCE: Mapping[str, _Needed] = {"s3": (("s3fs", (2024, 12)), ("botocore", (1, 36)))}


@dataclass(frozen=True, slots=True)
class Connection:
    """A file system of fsspec, where the storage begins in it, and what it promises."""

    filesystem: fsspec.AbstractFileSystem
    root: str
    is_flat: bool
    creates_exclusively: bool
    replaces_conditionally: bool
    in_one_piece: Mapping[str, object]
    is_s3: bool

    def below(self, folder: str) -> "Connection":
        """The same connection, seen from a folder."""
        return replace(self, root=f"{self.root}/{folder}")


def scheme_of(uri: str) -> str | None:
    """The scheme of an address, in lower case; None for a plain path."""
    scheme, separator, _ = uri.partition("://")
    return scheme.lower() if separator else None


def connect(location: Location) -> Connection:
    """Reach the store of a location; neither options nor causes appear in an error."""
    protocol, rest = _checked(location.uri)
    try:
        return _connect(protocol, rest, location)
    except ImportError:
        refusal = _missing_package(protocol, location.uri)
    except (LookupError, TypeError, ValueError) as cause:
        refusal = _refused_options(location.uri, cause)
    except Exception as cause:
        refusal = failure("open", location.uri, cause)
    raise refusal


def _checked(uri: str) -> tuple[str, str]:
    scheme = scheme_of(uri) or ""
    protocol = _ALIASES.get(scheme, scheme)
    if protocol not in _known_protocols():
        raise InvalidRequest(
            "unknown_storage",
            what=f"Lakewarden has no storage for the scheme {scheme!r}.",
            why="It takes plain paths, file, and fsspec protocols such as s3, gs and abfs.",
            now="Correct the address.",
            scheme=scheme,
        )
    rest = uri.partition("://")[2]
    if _WITH_PASSWORD.match(rest):
        raise InvalidRequest(
            "credentials_in_address",
            what="The address of the table holds a password.",
            why="Addresses appear in messages and in the table's own files.",
            now="Pass credentials as storage options.",
        )
    return protocol, rest


def _known_protocols() -> frozenset[str]:
    # What fsspec can reach, perhaps after installing a package, and what it has been taught.
    return frozenset(known_implementations) | frozenset(fsspec.registry)


def _connect(protocol: str, rest: str, location: Location) -> Connection:
    is_flat = protocol in _FLAT
    # A cached listing hides what other writers did. Not every protocol takes the option for it, so
    # the others get an instance of their own, and the option is set on that one afterwards.
    freshness = {"use_listings_cache": False} if is_flat else {"skip_instance_cache": True}
    options = _options(protocol, rest, location)
    filesystem, root = url_to_fs(f"{protocol}://{rest}", **options, **freshness)
    if not is_flat:
        filesystem.dircache.use_listings_cache = False
    root = root.rstrip("/")
    if is_flat and not root:
        raise ValueError("no bucket")
    creates, replaces = _has(_CREATES_SINCE, protocol), _has(_REPLACES_SINCE, protocol)
    in_one_piece = _IN_ONE_PIECE.get(protocol, {})
    is_s3 = protocol == "s3" and hasattr(filesystem, "_call_s3")
    return Connection(filesystem, root, is_flat, creates, replaces, in_one_piece, is_s3)


def _options(protocol: str, rest: str, location: Location) -> dict[str, object]:
    if protocol == "s3":
        return s3fs_options(location.options, bucket=rest.partition("/")[0])
    return without_hadoop(location.options)


def _has(since: Mapping[str, _Needed], protocol: str) -> bool:
    needed = since.get(protocol)
    return needed is not None and all(_installed(name) >= first for name, first in needed)


def _installed(package: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in re.findall(r"\d+", metadata.version(package))[:3])
    except metadata.PackageNotFoundError:
        return ()


def _missing_package(protocol: str, uri: str) -> LakewardenError:
    known = known_implementations.get(protocol, {})
    package = _EXTRAS.get(protocol)
    return InvalidRequest(
        "missing_package",
        what=f"Cannot open {uri}.",
        why=f"No package for the protocol {protocol!r} is installed.",
        now=f"Run: pip install {package}" if package else known.get("err", ""),
        uri=uri,
    )


def _refused_options(uri: str, cause: Exception) -> LakewardenError:
    return InvalidRequest(
        "invalid_location",
        what=f"Cannot open {uri} with the given options.",
        why=reason_of(cause),
        now="Check the address, and the names and types of the storage options.",
        uri=uri,
    )
