"""What a server is asked to be, and what of that is refused."""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field

from lakewarden.engine.kernel.errors import InvalidRequest

LOOPBACK = "127.0.0.1"
THRIFT_PORT, CONNECT_PORT = 10000, 15002


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """Where a server listens, whom it lets in, and what its sessions may do; a port 0 is any."""

    host: str = LOOPBACK
    # None for no such server at all.
    thrift_port: int | None = THRIFT_PORT
    connect_port: int | None = CONNECT_PORT
    # Passwords by user; without any everybody who reaches the port is let in.
    passwords: Mapping[str, str] = field(default_factory=dict, repr=False)
    # What a Connect client has to show, as its URL's `token`.
    token: str | None = field(default=None, repr=False)
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    allowed_roots: tuple[str, ...] = ()
    is_read_only: bool = False
    # The folder of the catalog and of tables without a location of their own.
    warehouse: str | None = None

    def __post_init__(self) -> None:
        if not is_loopback(self.host):
            self._refuse_strangers()

    def _refuse_strangers(self) -> None:
        if self.thrift_port is not None and not self.passwords:
            raise _unprotected_server(self.host, "Thrift", "--user and --password-file")
        if self.connect_port is not None and not self.token:
            raise _unprotected_server(self.host, "Spark Connect", "--token-file")


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine only; names are not looked up."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _unprotected_server(host: str, kind: str, remedy: str) -> InvalidRequest:
    return InvalidRequest(
        "open_door",
        what=f"The {kind} server will not listen at {host} without authentication.",
        why="Any client could change every table that this process can change.",
        now=f"Give {remedy}, or listen at {LOOPBACK}.",
        host=host,
    )
