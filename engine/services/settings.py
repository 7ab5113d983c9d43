"""Settings that all services by plans share."""

from lakewarden.engine.kernel.settings import Setting, whole_number

SPARK_BYTES_MIN = Setting(
    "lakewarden.services.spark_bytes_min",
    512 << 20,
    whole_number,
    (
        "From how many bytes to read Spark's workers execute a plan that a session's call runs; "
        "threads execute smaller ones, and start at once"
    ),
)
SERVICE_SETTINGS: tuple[Setting[object], ...] = (SPARK_BYTES_MIN,)
