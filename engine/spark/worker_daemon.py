"""A daemon for Spark's Python workers that begin their tasks sooner.

Spark starts it instead of its own where `spark.python.daemon.module` names it. Some versions of
PySpark look anew for modules before each task, and then read the directory of every zip on the path
again. Here a zip is read once: one that changes while the workers live is not noticed.

After each task a worker collects garbage, for which Python looks at all that was ever imported.
Here it looks at nothing that was there before the first task.
"""

import gc
import zipimport

from pyspark import daemon

import lakewarden.engine.spark.scan.frames

# The workers are copies of this process, and already have what this one has imported.
import lakewarden.engine.spark.write.assigning
import lakewarden.engine.spark.write.stream_writing

PRELOADED = (
    lakewarden.engine.spark.write.assigning,
    lakewarden.engine.spark.scan.frames,
    lakewarden.engine.spark.write.stream_writing,
)


def keep_zips(importer: zipimport.zipimporter) -> None:
    """Do nothing: what was read of a zip stays valid."""


if __name__ == "__main__":
    gc.freeze()
    setattr(zipimport.zipimporter, "invalidate_caches", keep_zips)  # noqa: B010
    daemon.manager()
