"""Settings that all services by plans share."""

from lakewarden.engine.kernel.settings import Setting, whole_number

SPARK_BYTES_MIN = Setting(
    "lakewarden.services.spark_bytes_min",
    512 << 20,
    whole_number,
    "Plans that read so many bytes are carried out by Spark's workers where a procedure is called"
    " from a session; smaller ones by threads, which begin at once",
)
SERVICE_SETTINGS: tuple[Setting[object], ...] = (SPARK_BYTES_MIN,)
