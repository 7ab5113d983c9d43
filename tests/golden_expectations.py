"""What a golden table must give where Java's own answer is wrong or missing, each with its reason.

The same list, told to users, is `docs/java-differences.md`.
"""

from collections.abc import Callable, Mapping
from urllib.parse import unquote

from tests.canonical import Row

Correction = Callable[[Row], Row]


def _original_timestamp(row: Row) -> Row:
    """Java shows the partition column of a timestamp key generator as text; its type is long."""
    return {**row, "ts": int(str(row["ts"]))}


def _original_date(row: Row) -> Row:
    """Java shows a slash separated date as its path; the row was written with dashes."""
    return {**row, "p": str(row["p"]).replace("/", "-")}


def _renamed_column(row: Row) -> Row:
    """Java loses a renamed column in older files unless its session turns on schema-on-read."""
    if row["title"] is None:
        return {**row, "title": "n" + str(row["n"])}
    return row


def _decoded_partition(row: Row) -> Row:
    """Java's incremental read shows a url-encoded partition value as it stands in the path."""
    return {**row, "p": None if row["p"] is None else unquote(str(row["p"]))}


def _row_after_a_delete(row: Row) -> Row:
    """Java brings a deleted row back when the row written after the delete is older than it."""
    if row["id"] != "k002" or row["name"] != "n2":
        return row
    instant = "20261118130912963"
    written = {"name": "again2", "ts": 1, "_hoodie_commit_time": instant}
    place = {"_hoodie_file_name": "38c442a8-01bf-4617-9962-243b2dd71f9a-0"}
    return {**row, **written, **place, "_hoodie_commit_seqno": f"{instant}_0_103"}


CORRECTIONS: dict[str, Correction] = {
    "cow_keygen_timestamp": _original_timestamp,
    "cow_partition_slash_separated": _original_date,
    "cow_schema_on_read": _renamed_column,
}
# Of the newest moment only: of earlier ones Java is right.
NEWEST_CORRECTIONS = CORRECTIONS | {"mor_deletes": _row_after_a_delete}
CHANGE_CORRECTIONS = NEWEST_CORRECTIONS | {"cow_partition_url_encoded": _decoded_partition}

# Java answers these with no rows or with an error; the files that would answer them are gone.
CLEANED_PAST = {
    "cow_clean_deleted_partition",
    "cow_clean_keep_latest_commits",
    "mor_clean_keep_latest_commits",
    "mor_metadata_services",
    "v6_cow_archived",
    "v9_mor_by_111",
}
# Pasts of which everything is there though Java does not read them, and the keys they have: a
# savepoint has kept them, or a clean that could have removed files of them has not.
SAVED_PAST = {
    "v8_cow_services_by_102": {f"k00{number}" for number in range(6)},
    "mor_archived_lsm_levels": {f"k{number:03}" for number in range(19)},
}


# Ends of windows whose files a clean has removed: Java returns what is left, often nothing.
CLEANED_WINDOWS = {
    ("mor_clean_keep_latest_commits", "20261118130018222"),
    ("mor_metadata_services", "20261118130646943"),
    ("v8_cow_services_by_102", "20261118132217749"),
    ("v9_mor_by_111", "20261118132050666"),
}


def corrected(
    name: str, rows: list[Row], corrections: Mapping[str, Correction] = CORRECTIONS
) -> list[Row]:
    """Java's rows of a golden table, put right where Java is known to be wrong."""
    correction = corrections.get(name)
    return rows if correction is None else [correction(row) for row in rows]
