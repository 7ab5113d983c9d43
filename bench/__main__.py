"""All measurements: `python -m bench`, or some of them with `--only`."""

import argparse
from types import ModuleType

from bench import (
    avro_records,
    clustering,
    compacting,
    copy_on_write,
    early_detection,
    hfile_entries,
    indexes,
    listing,
    lookups,
    memory,
    merge_on_read,
    opening,
    planning,
    remote_requests,
    results,
    small_writes,
    sql,
    sql_tables,
    storage_calls,
    streaming,
    table_functions,
    write_memory,
    writing_beside_java,
    writing_beside_lakes,
)

TOPICS: dict[str, ModuleType] = {
    module.__name__.rpartition(".")[2]: module
    for module in (
        avro_records,
        hfile_entries,
        merge_on_read,
        copy_on_write,
        sql,
        sql_tables,
        opening,
        listing,
        lookups,
        memory,
        writing_beside_java,
        writing_beside_lakes,
        small_writes,
        write_memory,
        compacting,
        clustering,
        early_detection,
        indexes,
        planning,
        table_functions,
        storage_calls,
        streaming,
        remote_requests,
    )
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=TOPICS, default=list(TOPICS), metavar="TOPIC")
    for topic in parser.parse_args().only:
        _measure(topic, TOPICS[topic])
    results.write_page(results.kept(TOPICS))
    print(f"\nwritten to {results.PAGE}")


def _measure(topic: str, module: ModuleType) -> None:
    title = (module.__doc__ or topic).splitlines()[0].rstrip(".")
    print(f"\n{title}\n", flush=True)
    measures = module.run()
    results.keep(results.outcome(topic, title, measures))
    print(results.table(measures), flush=True)


if __name__ == "__main__":
    main()
