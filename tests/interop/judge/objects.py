"""Java's own objects: the table's client, its timeline, its file slices, its metadata table."""

from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession

Java = Any  # an object on the other side of the bridge

AFTER_EVERYTHING = "99991231235959999"


class JavaTable:
    """One table as Java's meta client sees it."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.hudi = spark._jvm.org.apache.hudi
        configuration = spark._jsc.hadoopConfiguration()
        storage = self.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(configuration)
        builder = self.hudi.common.table.HoodieTableMetaClient.builder()
        self.client = builder.setConf(storage).setBasePath(path).build()
        self.context = self.hudi.client.common.HoodieSparkEngineContext(spark._jsc)
        self.path = path

    @property
    def indexes(self) -> set[str]:
        """Names of the metadata partitions that are ready."""
        return set(self.client.getTableConfig().getMetadataPartitions())

    def metadata(self, *, from_table: bool) -> Java:
        """Java's answers about files and statistics: from the metadata table if there is one."""
        storage, base = self.client.getStorage(), self.client.getBasePath().toString()
        if not from_table or "files" not in self.indexes:
            return self.hudi.metadata.FileSystemBackedTableMetadata(self.context, storage, base)
        config = self.hudi.common.config.HoodieMetadataConfig.newBuilder().enable(True).build()
        return self.hudi.metadata.HoodieBackedTableMetadata(self.context, storage, config, base)

    def view(self, *, from_table: bool) -> Java:
        """Java's file-system view, over the instants that its readers take into account."""
        instants = self.client.getCommitsAndCompactionTimeline()
        return self.hudi.common.table.view.HoodieTableFileSystemView(
            self.metadata(from_table=from_table),
            self.client,
            instants.filterCompletedAndCompactionInstants(),
        )

    def partitions(self) -> list[str]:
        return sorted(self.metadata(from_table=False).getAllPartitionPaths())

    def files(self, *, from_table: bool) -> dict[str, int]:
        """Sizes of all data and log files by path, as the metadata table or storage lists them."""
        source = self.metadata(from_table=from_table)
        sizes = {}
        for partition in source.getAllPartitionPaths():
            folder = self.hudi.common.fs.FSUtils.constructAbsolutePath(
                self.client.getBasePath(), partition
            )
            for entry in source.getAllFilesInPartition(folder):
                sizes[f"{partition}/{entry.getPath().getName()}"] = entry.getLength()
        return sizes

    def latest_base_files(self) -> list[tuple[str, str, str]]:
        """(partition, name, local path) of the newest base file of every file group."""
        view = self.view(from_table=False)
        return [
            (partition, file.getFileName(), file.getPath().removeprefix("file:"))
            for partition in self.partitions()
            for file in items(view.getLatestBaseFiles(partition))
        ]


def items(stream: Java) -> Iterator[Java]:
    """The items of a Java stream."""
    iterator = stream.iterator()
    while iterator.hasNext():
        yield iterator.next()


def timeline(spark: SparkSession, table: str) -> dict[str, Any]:
    """The instants as Java orders them, and the table's properties."""
    client = JavaTable(spark, table).client
    properties = dict(client.getTableConfig().getProps())
    return {
        "properties": {str(key): str(value) for key, value in sorted(properties.items())},
        "active": [_instant(one) for one in client.getActiveTimeline().getInstants()],
        "archived": [_instant(one) for one in client.getArchivedTimeline().getInstants()],
    }


def file_slices(spark: SparkSession, table: str, *, metadata: bool = True) -> dict[str, Any]:
    """Per partition the latest merged slices and replaced groups; and what pending plans hold."""
    java = JavaTable(spark, table)
    view = java.view(from_table=metadata)
    partitions = {}
    for partition in java.partitions():
        slices = items(view.getLatestMergedFileSlicesBeforeOrOn(partition, AFTER_EVERYTHING))
        replaced = items(view.getAllReplacedFileGroups(partition))
        partitions[partition] = {
            "latest": sorted((_slice(java, one) for one in slices), key=lambda s: s["file_id"]),
            "replaced": sorted(group.getFileGroupId().getFileId() for group in replaced),
        }
    held = {
        "compaction": view.getPendingCompactionOperations(),
        "log_compaction": view.getPendingLogCompactionOperations(),
    }
    pending = {
        service: sorted([pair.getLeft(), pair.getRight().getFileId()] for pair in items(pairs))
        for service, pairs in held.items()
    }
    pending["clustering"] = sorted(
        [pair.getRight().requestedTime(), pair.getLeft().getFileId()]
        for pair in items(view.getFileGroupsInPendingClustering())
    )
    view.close()
    return {"partitions": partitions, "pending": pending}


def _instant(instant: Java) -> dict[str, str | None]:
    return {
        "requested": instant.requestedTime(),
        "action": instant.getAction(),
        "state": instant.getState().name(),
        "completed": instant.getCompletionTime(),
    }


def _slice(java: JavaTable, file_slice: Java) -> dict[str, Any]:
    base = file_slice.getBaseFile()
    in_order = java.hudi.common.model.HoodieLogFile.getLogFileComparator()
    return {
        "file_id": file_slice.getFileId(),
        "base_instant": file_slice.getBaseInstantTime(),
        "base_file": base.get().getFileName() if base.isPresent() else None,
        "log_files": [
            log.getFileName() for log in items(file_slice.getLogFiles().sorted(in_order))
        ],
    }
