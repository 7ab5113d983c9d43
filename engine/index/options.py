"""Index options: what may be said about how a write finds keys, by Hudi's names and defaults."""

from lakewarden.engine.index.kinds import IndexKind, parse_kind
from lakewarden.engine.kernel.settings import Setting, flag, whole_number

SIMPLE_ENGINE = "SIMPLE"

INDEX_TYPE: Setting[IndexKind | None] = Setting(
    "hoodie.index.type",
    None,
    parse_kind,
    "How a write finds keys; by default the table's record index, or SIMPLE without one",
)
BUCKET_ENGINE = Setting(
    "hoodie.index.bucket.engine",
    SIMPLE_ENGINE,
    lambda text: text.strip().upper(),
    "How a bucket index divides keys; only SIMPLE is implemented",
)
BUCKET_COUNT = Setting(
    "hoodie.bucket.index.num.buckets", 256, whole_number, "Buckets in each partition"
)
BUCKET_FIELDS = Setting(
    "hoodie.bucket.index.hash.field",
    "",
    str,
    "The key fields that a bucket index hashes, separated by commas; by default all of them",
)
SIMPLE_MOVES = Setting(
    "hoodie.simple.index.update.partition.path",
    True,
    flag,
    "Whether GLOBAL_SIMPLE moves a key to the partition of the incoming row",
)
BLOOM_MOVES = Setting(
    "hoodie.bloom.index.update.partition.path",
    True,
    flag,
    "Whether GLOBAL_BLOOM moves a key to the partition of the incoming row",
)
RECORD_INDEX_MOVES = Setting(
    "hoodie.record.index.update.partition.path",
    False,
    flag,
    "Whether a global record index moves a key to the partition of the incoming row",
)
KEY_CACHE_BYTES = Setting(
    "lakewarden.stream.key_cache_bytes",
    256 << 20,
    whole_number,
    (
        "Bytes up to which a process keeps the record index of a table that it writes a stream to, "
        "at 20 a key; 0 keeps nothing"
    ),
)
KEY_CACHE_FOLDER = Setting(
    "lakewarden.stream.key_cache_folder",
    "",
    str,
    (
        "A folder in which a process that writes a stream saves what it keeps of the record index, "
        "so that the next one need not read the index; nothing is saved without it"
    ),
)
INDEX_SETTINGS: tuple[Setting[object], ...] = (
    INDEX_TYPE,
    BUCKET_ENGINE,
    BUCKET_COUNT,
    BUCKET_FIELDS,
    SIMPLE_MOVES,
    BLOOM_MOVES,
    RECORD_INDEX_MOVES,
    KEY_CACHE_BYTES,
    KEY_CACHE_FOLDER,
)
