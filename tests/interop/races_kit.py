"""What several tests share."""

LOCK = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
SEVERAL_WRITERS = {
    "hoodie.write.lock.provider": LOCK,
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.clean.failed.writes.policy": "LAZY",
}
PATIENT = {
    "hoodie.write.lock.client.num_retries": "600",
    "hoodie.write.lock.client.wait_time_ms_between_retry": "100",
}
