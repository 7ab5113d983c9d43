"""Options of S3: credentials and addresses by the names that users know, as s3fs takes them.

Hadoop's `fs.s3a.*` describe the same for Spark, and AWS's own names are those of other readers.
Where several say the same, s3fs's own name wins, then AWS's, then Hadoop's.
"""

from collections.abc import Mapping

HADOOP = "fs.s3a."
_PER_BUCKET = f"{HADOOP}bucket."
_ANONYMOUS = "AnonymousAWSCredentialsProvider"
_OF_HADOOP: Mapping[str, str] = {
    "access.key": "key",
    "secret.key": "secret",
    "session.token": "token",
    "endpoint": "endpoint_url",
    "endpoint.region": "region",
    "path.style.access": "path_style",
}
_OF_AWS: Mapping[str, str] = {
    "aws_access_key_id": "key",
    "aws_secret_access_key": "secret",
    "aws_session_token": "token",
    "aws_endpoint_url": "endpoint_url",
    "aws_region": "region",
}
_SWITCHES = frozenset({"anon", "requester_pays", "use_ssl", "path_style"})


def without_hadoop(options: Mapping[str, object]) -> dict[str, object]:
    """The options of a store that is not S3: a session may have S3's for other tables."""
    return {name: value for name, value in options.items() if not name.startswith(HADOOP)}


def s3fs_options(options: Mapping[str, object], bucket: str) -> dict[str, object]:
    """The options of a bucket as s3fs takes them.

    >>> s3fs_options({"fs.s3a.access.key": "A", "fs.s3a.endpoint": "http://here"}, "lake")
    {'key': 'A', 'endpoint_url': 'http://here'}
    >>> s3fs_options({"aws_region": "eu-north-1", "anon": "true"}, "lake")
    {'anon': True, 'client_kwargs': {'region_name': 'eu-north-1'}}
    """
    found = _of_hadoop(options, bucket)
    found |= {_OF_AWS[name]: value for name, value in options.items() if name in _OF_AWS}
    found |= {
        name: value
        for name, value in options.items()
        if name not in _OF_AWS and not name.startswith(HADOOP)
    }
    found |= {name: _is_on(found[name]) for name in _SWITCHES if name in found}
    if region := found.pop("region", None):
        found["client_kwargs"] = {"region_name": region, **_nested(found, "client_kwargs")}
    if found.pop("path_style", False):
        config = _nested(found, "config_kwargs")
        s3 = {"addressing_style": "path", **_nested(config, "s3")}
        found["config_kwargs"] = {**config, "s3": s3}
    return found


def _of_hadoop(options: Mapping[str, object], bucket: str) -> dict[str, object]:
    said = {
        name.removeprefix(HADOOP): value
        for name, value in options.items()
        if name.startswith(HADOOP) and not name.startswith(_PER_BUCKET)
    }
    own = f"{_PER_BUCKET}{bucket}."
    said |= {
        name.removeprefix(own): value for name, value in options.items() if name.startswith(own)
    }
    found = {ours: said[theirs] for theirs, ours in _OF_HADOOP.items() if said.get(theirs)}
    if "endpoint_url" in found:
        is_safe = _is_on(said.get("connection.ssl.enabled", "true"))
        found["endpoint_url"] = _with_scheme(str(found["endpoint_url"]), is_safe=is_safe)
    if _ANONYMOUS in str(said.get("aws.credentials.provider", "")):
        found["anon"] = True
    return found


def _with_scheme(endpoint: str, *, is_safe: bool) -> str:
    scheme = "https" if is_safe else "http"
    return endpoint if "://" in endpoint else f"{scheme}://{endpoint}"


def _nested(options: Mapping[str, object], name: str) -> Mapping[str, object]:
    nested = options.get(name)
    return nested if isinstance(nested, Mapping) else {}


def _is_on(value: object) -> bool:
    return value if isinstance(value, bool) else str(value).strip().lower() == "true"
