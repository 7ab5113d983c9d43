"""The writer: one write from incoming rows to a committed instant.

The walk: settle what others left behind, prepare the rows (nothing is written if anything is wrong
with them), publish an instant, find the keys and plan, make the files, commit.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from lakewarden.engine.conflicts.conflicts import ObservedInstants
from lakewarden.engine.detection.rivals import begins_again
from lakewarden.engine.detection.strategies import detection_rules
from lakewarden.engine.formats.instant_metadata import replace as replace_payload
from lakewarden.engine.formats.instant_metadata.replace import RequestedReplace
from lakewarden.engine.index.key_check import KeyCheck, Witness
from lakewarden.engine.index.kinds import IndexChoice
from lakewarden.engine.index.options import KEY_CACHE_BYTES, KEY_CACHE_FOLDER
from lakewarden.engine.index.settings import select_index
from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.metadata.reading.kept_keys import snapshots_in
from lakewarden.engine.metadata.reading.key_cache import KeyCache
from lakewarden.engine.metadata.writing.writer import refuse_unheard, refuse_unmaintained
from lakewarden.engine.read.query.answer import naming_removals
from lakewarden.engine.run.processes import stopping_on_signal
from lakewarden.engine.snapshot import Loaded, Snapshot
from lakewarden.engine.table.config import TableConfig, TableType, table_config
from lakewarden.engine.table.keygen.key_scheme import KeyedRows, keyed_at
from lakewarden.engine.table.schema import TableSchema
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.transaction.abort_attempt import aborting_on_error
from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.attempts.publish import publish
from lakewarden.engine.transaction.commit import Outcome, commit, outputs_of
from lakewarden.engine.transaction.recovery.failed_writes import load_recovered
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.write.announcement import WriteIntent, announce, record_identity
from lakewarden.engine.write.distributed_rows import (
    LOCAL_REWRITE_BYTES_MAX,
    DistributedRows,
    DistributedWrite,
    PreparedDistributedRows,
    RewriteWorkers,
    RowPreparation,
)
from lakewarden.engine.write.files.spec import WriteSpec, WrittenFile
from lakewarden.engine.write.local_files import listed_paths, local_files
from lakewarden.engine.write.metadata_table import ensure_metadata_table
from lakewarden.engine.write.outcome import AtCommit, commit_metadata, history_to_keep, table_change
from lakewarden.engine.write.plan import WritePlan, markers_of, rewritten_bytes
from lakewarden.engine.write.planner import Phases, Planner, Prepared, new_keys, read_scopes_of
from lakewarden.engine.write.replaced_rows import (
    ReplacedRows,
    kept_indexes,
    refuse_second_homes,
    replaced_rows,
)
from lakewarden.engine.write.request import (
    Commit,
    Effect,
    Findings,
    Incoming,
    Replacement,
    WriteRequest,
    committed,
    count_rows,
    nothing_committed,
)
from lakewarden.engine.write.rows.combine import combined
from lakewarden.engine.write.rows.evolve import columns_added, columns_widened, evolved
from lakewarden.engine.write.rows.prepare import with_deletes
from lakewarden.engine.write.settings import (
    ALLOW_DUPLICATES,
    EVOLVE,
    NULL_FOR_MISSING,
    STREAM_DEPTH,
    combines,
    conflict_retries,
    write_spec,
)
from lakewarden.engine.write.streams import Turn, read_turn, refuse_depth


class TableWriter:
    """Runs one write after the other on one table."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def write(self, request: WriteRequest, loaded: Loaded | None = None) -> Commit:
        """Commit a write; one that lost to another writer begins anew as often as is set.

        The properties that the context's settings are from need not be loaded twice.
        """
        retries = conflict_retries(self._context.settings)
        # What does not work together is refused before anything is done.
        detection_rules(self._context.settings)
        refuse_depth(self._context.settings[STREAM_DEPTH])
        while True:
            try:
                with stopping_on_signal():
                    return self._write(request, loaded)
            except Conflict as error:
                if not begins_again(self._context, error, retries):
                    raise
                retries, loaded = retries - 1, None

    def _write(self, request: WriteRequest, loaded: Loaded | None) -> Commit:
        phases = Phases(self._context.ports.clock, self._context.ports.events)
        with phases("settle"):
            turn = None if request.batch is None else read_turn(self._context, request.batch)
            # What a stream's ledger names has to be on the timeline that is loaded after it.
            snapshot = load_recovered(self._context, loaded if turn is None else None)
            if turn is not None and turn.left_pending(snapshot):
                snapshot = load_recovered(self._context)
            if ensure_metadata_table(self._context, snapshot):
                snapshot = load_recovered(self._context)
        with naming_removals(snapshot):
            return self._write_to(snapshot, request, phases, turn)

    def _write_to(
        self, snapshot: Snapshot, request: WriteRequest, phases: Phases, turn: Turn | None
    ) -> Commit:
        """Everything is decided from one snapshot, and judged by it at the commit."""
        with phases("prepare"):
            refuse_unheard(snapshot.metadata)
            turn = None if turn is None else turn.settled(snapshot)
            if not self._context.settings[ALLOW_DUPLICATES]:
                request = request.without_duplicates(snapshot.config)
            prepared = self._prepare(snapshot, request, turn)
            turn = prepared.turn
        earlier = None if turn is None else turn.earlier(snapshot, request.operation)
        commit = earlier or self._write_prepared(request, prepared, phases)
        if turn is not None:
            keys = self._context.memory.keys
            keys.tidy()
            commit = turn.reported(commit, keys.lookups)
        return commit

    def _write_prepared(self, request: WriteRequest, prepared: Prepared, phases: Phases) -> Commit:
        turn = prepared.turn
        if prepared.is_nothing:
            if turn is not None:
                turn.skip()
            return nothing_committed(request.operation, phases.seconds)
        action, content = _action(prepared.config, request)
        with phases("publish"):
            published = publish(self._context, action, claims=True, content=content)
            attempt = published.attempt
            assert attempt is not None
        with attempt:
            with aborting_on_error(self._context, attempt):
                if turn is not None:
                    turn.begin(attempt.instant)
                outcome, effect = self._outcome(request, prepared, attempt, phases)
            with phases("commit"):
                receipt = commit(self._context, attempt, outcome)
        return replace(
            committed(request.operation, receipt, outcome.metadata, effect, phases.seconds),
            columns_added=columns_added(prepared.current, prepared.schema),
            columns_widened=columns_widened(prepared.current, prepared.schema),
        )

    def _prepare(self, state: Snapshot, request: WriteRequest, turn: Turn | None) -> Prepared:
        context = self._context
        refuse_unmaintained(context.storage, state.config)
        chosen = select_index(state, context.settings)
        index = replace(
            request.index or chosen,
            buckets=chosen.buckets,
            within_partitions=request.within_partitions,
        )
        incoming = request.incoming_of(state)
        current = state.schema()
        schema = request.fixed_schema(state, current) or self._evolved(state, current, incoming)
        if schema is not current:
            # Refused while nothing has been written.
            history_to_keep(state, current, schema, "", request.alteration)
        preparation = RowPreparation(
            properties=dict(state.config.properties),
            schema=schema,
            deletes=request.deletes,
            partition_matters=not index.is_global,
        )
        distributed = rewrite_workers = effect = placement = None
        findings = Findings()
        if isinstance(incoming, DistributedRows):
            distributed = self._distributed_work(
                request, incoming, state.config, index, preparation
            )
            rows = distributed.rows
        else:
            rows, rewrite_workers = self._keyed(incoming, preparation), incoming.rewrite_workers
            effect, placement, findings = incoming.effect, incoming.placement, incoming.findings
        turn = None if turn is None else turn.of_rows(rows, state.config)
        # Deletes of one key are alike: nothing depends on which of them counts.
        is_apart = placement is not None or (distributed and request.deletes)
        if combines(context.settings, request.operation) and not is_apart:
            rows = combined(rows, state.config.merge, by_partition=not index.is_global)
        # What was found to be so has to be so at the commit, whether or not rows follow from it.
        has_grown = columns_added(current, schema) or columns_widened(current, schema)
        says_more = has_grown or request.says_more or findings
        is_seen = placement is None and (distributed is None or distributed.is_keyed)
        is_nothing = is_seen and not len(rows) and not says_more
        if not is_nothing:
            record_identity(context, state, chosen)
        return Prepared(
            state,
            current,
            schema,
            index,
            rows,
            chosen.identity,
            state.definitions,
            kept_indexes(state, schema, context.settings, chosen.identity.scope),
            distributed,
            rewrite_workers,
            effect,
            placement,
            findings,
            is_nothing,
            turn,
        )

    def _keyed(self, incoming: Incoming, preparation: RowPreparation) -> KeyedRows:
        rows = preparation.fit(incoming.rows)
        if incoming.is_delete is not None:
            is_delete = incoming.is_delete.to_numpy()
            rules = table_config(preparation.properties).merge
            rows = with_deletes(rows, is_delete, rules)
        if incoming.gone is None:
            return rows
        return replace(preparation, deletes=True).fit(incoming.gone).followed_by(rows)

    def _distributed_work(
        self,
        request: WriteRequest,
        distributed: DistributedRows,
        config: TableConfig,
        index: IndexChoice,
        preparation: RowPreparation,
    ) -> PreparedDistributedRows:
        """The keys of rows that go into new files just as they come are not needed."""
        wants_keys = request.sort or request.finds_keys or index.buckets is not None
        by_keys = request.replacement is Replacement.TOUCHED_PARTITIONS
        if request.divides and not (
            wants_keys or by_keys or combines(self._context.settings, request.operation)
        ):
            return distributed.as_they_come(preparation)
        columns = (*config.merge.ordering_names, *request.sort)
        return distributed.keyed(preparation, tuple(dict.fromkeys(columns)))

    def _evolved(
        self, state: Snapshot, current: TableSchema, incoming: Incoming | DistributedRows
    ) -> TableSchema:
        return evolved(
            current,
            incoming.schema,
            allow_missing=self._context.settings[NULL_FOR_MISSING],
            table_name=state.config.name,
            evolves=self._context.settings[EVOLVE],
            rows=incoming.rows if isinstance(incoming, Incoming) else None,
        )

    def _outcome(
        self, request: WriteRequest, prepared: Prepared, attempt: Attempt, phases: Phases
    ) -> tuple[Outcome, Effect]:
        """Everything between the instant and its commit: keys, files, and what they mean."""
        context = self._context
        # What reading the rows has taken besides them goes back to the system.
        pa.default_memory_pool().release_unused()
        with phases("find keys"):
            planner = Planner(
                prepared.state,
                prepared.index,
                context.settings,
                context.ports,
                unpacked_bytes=prepared.distributed.unpacked_bytes if prepared.distributed else 0,
                known=self._known_keys(prepared),
                fills_logs=prepared.fills_logs(context.settings, request),
            )
            rows = keyed_at(attempt.instant, prepared.rows, prepared.config)
            plan = planner.plan(rows, request, prepared.placement)
        spec = self._spec(request, prepared, attempt)
        spec = replace(spec, markers=markers_of(context.settings, plan))
        intent = WriteIntent(
            snapshot=prepared.state,
            plan=plan,
            spec=spec,
            operation=request.operation,
            strategy=prepared.strategy(context.settings),
            read_scopes=read_scopes_of(request, plan, prepared.findings),
        )
        announce(context, attempt, intent, detection_rules(context.settings))
        workers = prepared.distributed or self._rewrite_workers(prepared, plan)
        with phases("write files"):
            files = tuple(self._files(workers, planner, plan, spec, attempt))
        with phases("replaced keys"):
            gone = replaced_rows(
                prepared.state, plan, prepared.rows, prepared.row_indexes, context.ports.executor
            )
        if prepared.may_repeat_keys or (prepared.has_one_place and request.overwrites_partitions):
            scope = prepared.identity.scope
            refuse_second_homes(prepared.state, files, gone.keys, context.ports.executor, scope)
        effect = prepared.effect or count_rows(plan, files)
        outcome = self._outcome_of(request, prepared, attempt.instant, plan, files, gone, effect)
        announced = listed_paths(spec, plan) if workers is None else None
        return replace(outcome, announced=announced), effect

    def _known_keys(self, prepared: Prepared) -> KeyCache | None:
        """The cache of keys for a batch of a stream: many are to follow in this process.

        A log of an older metadata table grows, so that what was read of it may be a part.
        """
        if prepared.turn is None or prepared.state.layout.version == 1:
            return None
        context, settings = self._context, self._context.settings
        folder = settings[KEY_CACHE_FOLDER]
        saved = snapshots_in(folder, context.storage.location, context.ports.events)
        return context.memory.keys.within(settings[KEY_CACHE_BYTES], saved)

    def _outcome_of(
        self,
        request: WriteRequest,
        prepared: Prepared,
        instant: str,
        plan: WritePlan,
        files: Sequence[WrittenFile],
        gone: ReplacedRows,
        effect: Effect,
    ) -> Outcome:
        """What the files of a write mean for the table, ready to be committed."""
        context = self._context
        said = {} if prepared.turn is None else prepared.turn.said(effect)
        history = history_to_keep(
            prepared.state, prepared.current, prepared.schema, instant, request.alteration
        )
        metadata = commit_metadata(
            files,
            request.operation,
            prepared.schema.avro_text or "",
            extra={**request.extra_metadata, **history.said, **said},
            replaced=plan.replaced_ids if request.replaces else None,
        )
        seen = ObservedInstants.of(prepared.state.timeline.active)
        change = table_change(
            instant,
            files,
            index_removals=gone.keys,
            stays=plan.stays,
            valued=gone.values,
            is_global=not prepared.has_partitioned_record_index,
        )
        stays = frozenset(one.home for one in plan.stays)
        return Outcome(
            metadata=metadata,
            change=change,
            touched=frozenset(file.key for file in files)
            | frozenset(slice_.key for slice_ in plan.replaced)
            | stays,
            appended=frozenset(file.key for file in files if file.stat.log_files is not None)
            | stays,
            read_scopes=read_scopes_of(request, plan, prepared.findings),
            seen=seen,
            strategy=prepared.strategy(context.settings),
            key_check=self._key_check(request, prepared, plan, seen, instant),
            outputs=outputs_of(metadata),
            at_commit=AtCommit(
                context.storage,
                prepared.current,
                prepared.schema,
                files,
                plan.replaced_ids,
                prepared.indexes,
                prepared.identity,
                history,
            ),
        )

    def _key_check(
        self,
        request: WriteRequest,
        prepared: Prepared,
        plan: WritePlan,
        seen: ObservedInstants,
        instant: str,
    ) -> KeyCheck | None:
        """None for a write that takes no key for new, or that checks none."""
        new = new_keys(plan, request, prepared.index, prepared.config, prepared.findings)
        if not new:
            return None
        ports = self._context.ports
        witness = Witness(
            storage=self._context.storage,
            config=prepared.config,
            executor=ports.executor,
            clock=ports.clock,
            asks_index=prepared.index.kind.is_record_index,
        )
        return KeyCheck(witness, new, seen, instant)

    def _files(
        self,
        maker: RewriteWorkers | None,
        planner: Planner,
        plan: WritePlan,
        spec: WriteSpec,
        attempt: Attempt,
    ) -> Iterable[WrittenFile]:
        if maker is None:
            return local_files(self._context, spec, plan, attempt)
        limits, measures = planner.far_limits()
        job = DistributedWrite(
            spec=replace(spec, threads=1), claim=attempt.claim, limits=limits, measures=measures
        )
        return maker.write(job, plan, attempt.assert_mine)

    def _rewrite_workers(self, prepared: Prepared, plan: WritePlan) -> RewriteWorkers | None:
        """Others who rewrite files, if there are too many of them for this process."""
        size_bytes = rewritten_bytes(plan, prepared.config.table_type)
        is_much = size_bytes > self._context.settings[LOCAL_REWRITE_BYTES_MAX]
        return prepared.rewrite_workers if is_much else None

    def _spec(self, request: WriteRequest, prepared: Prepared, attempt: Attempt) -> WriteSpec:
        spec = write_spec(
            prepared.state,
            prepared.schema,
            self._context.settings,
            instant=attempt.instant,
            attempt=attempt.number,
            logs_take_inserts=prepared.index.buckets is not None
            or prepared.fills_logs(self._context.settings, request),
        )
        return replace(
            spec,
            rewrites_bases=prepared.placement is not None,
            # As Java's bulk inserts and overwrites begin the groups of their buckets.
            begins_with_bases=request.divides or prepared.index.buckets is None,
            index_tells_lives=prepared.index.tells_lives and prepared.placement is None,
        )


def _action(config: TableConfig, request: WriteRequest) -> tuple[Action, bytes]:
    """The action of a write, and what its requested file says."""
    if request.replaces:
        return Action.REPLACE_COMMIT, replace_payload.encode_plan(RequestedReplace())
    if config.table_type is TableType.MERGE_ON_READ:
        return Action.DELTA_COMMIT, b""
    return Action.COMMIT, b""
