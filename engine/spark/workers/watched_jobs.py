"""Watched jobs: what Spark computes for an attempt is called off when the attempt may not go on.

Workers have no way to be asked. So the driver waits beside the job, looks a few times a second
whether the attempt goes on, and has Spark stop its tasks if it does not, or if the driver itself is
interrupted. A Python worker may live for some seconds longer: what it makes then is swept.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from lakewarden.engine.run.executor import THREAD_NAME
from lakewarden.engine.spark.workers.reports import reports_of

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

Watch = Callable[[], None]

# How often the driver asks whether the attempt may go on while it waits for workers.
LOOK_EVERY_SECONDS = 0.5
_JOB_GROUP = "spark.jobGroup.id"


class WatchedJobs:
    """The jobs with one tag, in a session here or a remote one."""

    def __init__(self, spark: "SparkSession", tag: str) -> None:
        self._spark = spark
        self._tag = tag

    def reports(self, frame: "DataFrame", watch: Watch) -> list[object]:
        """What workers hand over, when all are done; raises what the watch raises."""
        with ThreadPoolExecutor(1, thread_name_prefix=THREAD_NAME) as pool:
            job = pool.submit(self._with_the_callers_tags(self._collected), frame)
            try:
                while not wait([job], LOOK_EVERY_SECONDS).done:
                    watch()
            except BaseException:
                self._cancel_until_done(job)
                raise
            return job.result()

    def cancel(self) -> None:
        """Stop the workers; nothing happens where none is at work."""
        context = _classic(self._spark)
        if context is None:
            self._spark.interruptTag(self._tag)
        else:
            context.cancelJobsWithTag(self._tag)

    def _collected(self, frame: "DataFrame") -> list[object]:
        with self._tagged():
            return list(reports_of(frame))

    def _with_the_callers_tags(
        self, work: Callable[["DataFrame"], list[object]]
    ) -> Callable[["DataFrame"], list[object]]:
        """The same in another thread, with the job group and the tags by which callers cancel."""
        context = _classic(self._spark)
        if context is None:
            inheriting = import_module("pyspark.util").inheritable_thread_target(self._spark)
            return cast(Callable[["DataFrame"], list[object]], inheriting(work))
        jvm = cast("Any", context)._jsc.sc()
        properties = jvm.getLocalProperties().clone()

        def inherited(frame: "DataFrame") -> list[object]:
            jvm.setLocalProperties(properties)
            if properties.getProperty(_JOB_GROUP) is None:
                # Callers without a group find the jobs by the name of the work.
                context.setJobGroup(self._tag, self._tag)
            return work(frame)

        return inherited

    @contextmanager
    def _tagged(self) -> Iterator[None]:
        """Jobs of this thread have the tag meanwhile."""
        context = _classic(self._spark)
        if context is not None:
            context.addJobTag(self._tag)
            context.setInterruptOnCancel(True)
            yield
            return
        self._spark.addTag(self._tag)
        try:
            yield
        finally:
            self._spark.removeTag(self._tag)

    def _cancel_until_done(self, job: Future[list[object]]) -> None:
        """A job that had not quite started is not met by the first call."""
        self.cancel()
        while not wait([job], LOOK_EVERY_SECONDS).done:
            self.cancel()


def _classic(spark: "SparkSession") -> "SparkContext | None":
    """The context of a session that has one here; a remote one has not."""
    context: SparkContext | None = getattr(spark, "sparkContext", None)
    return context
