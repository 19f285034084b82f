"""The loop of a job: hands out work, takes in what ends, scores parts as they become complete, summarises runs.

In: a Plan and a Cluster. Out: summaries by run, and what stopped any of them. It holds counts and receipts, never
documents, predictions or verdicts. A part is scored as soon as its last document is recorded, while others are still
being predicted.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from . import layout, storage
from .cluster.account import code_digest
from .cluster.contract import Cluster, Ended, Graded, Predicted, Summed
from .cluster.work import do_give_up
from .errors import InternalError, LimitReached, OebError, Stopped
from .finish import finish, known, summary_task
from .plan import Part, Plan, RunPlan
from .ready import Ready
from .receipts import add_to_index, merge_index, read_receipt, stored_receipts
from .records import PartTask, PredictBatch, Receipt, SummaryTask
from .runstate import GoldNotes, Progress, RunState, asking, member_of, same_account
from .signals import Interrupts
from .steering import Steering
from .tables import DamagedPart

BATCH = 32  # documents of a free provider in one task
ATTEMPTS = 3  # of work whose worker is lost
FLUSH_SECONDS = 2.0  # receipts that a kill may cost; they are made again from the records
GRACE_SECONDS = {130: 120.0, 143: 25.0, 129: 25.0}  # for what is under way, by exit code of the interrupt
FAILING_SECONDS = 125.0  # for paid calls under way when the job fails


class Driver:
    """See the module's text. ``go`` once; after it ``states`` tell what came of each Run."""

    def __init__(self, plan: Plan, cluster: Cluster, progress: Progress, interrupts: Interrupts) -> None:
        self.plan, self.cluster, self.progress, self.interrupts = plan, cluster, progress, interrupts
        self.ready = Ready(plan, lambda: cluster.memory)
        self.predicting = self.scoring = 0
        self.calling: Counter[str] = Counter()  # documents handed out, by account
        self.lost: Counter[Any] = Counter()
        self.repaired: set[tuple[str, str]] = set()
        self.notes = GoldNotes(progress)
        self.positions = {doc_id: position for position, doc_id in enumerate(plan.corpus.ids)}
        self.selected = set(plan.corpus.selected)
        self.states = [self._state(run) for run in plan.runs]
        self.by_name = {state.name: state for state in self.states}
        self.steering = Steering(plan.out, progress)

    def _state(self, made: RunPlan) -> RunState:
        plan = self.plan
        state = RunState(made, total=len(plan.corpus.selected))
        asked = set(made.predict)
        for position in plan.corpus.selected:
            receipt = made.receipts.get(plan.corpus.ids[position])
            if receipt is not None and position not in asked:
                state.count(receipt)
        state.queue.extend(sorted(made.predict, key=lambda position: (plan.homes[position], position)))
        state.left.update(plan.homes[position] for position in made.predict)
        return state

    # --- the loop -------------------------------------------------------------------------------------------------

    def go(self) -> None:
        """Works until every Run has a summary.

        Raises:
            StorageError, InternalError: nothing can go on. Stopped: interrupted; `stop` is to follow.
        """
        self.accounts = asking(self.states)
        for account in self.accounts:
            self._register(account)
        for state in self.states:
            waiting = {Part(scorer, home) for scorer in self.plan.selection.scorers for home in state.left}
            parts = self.plan.to_score(state.plan)
            state.parts = len(parts | waiting)
            for part in parts - waiting:
                self._make_part_ready(state, part)
        self._finish_ended()
        while any(state.summary is None for state in self.states):
            if self.steering.look(self.states):
                for account in self.accounts:
                    self._register(account)
            if self.steering.begins(self.interrupts):
                self._fill()
            for ended in self.cluster.wait(0.5):
                self._take(ended)
            self._flush(FLUSH_SECONDS)
            self._finish_ended()
            self.progress.update(self.states)
            if self.interrupts.exit_code:
                raise Stopped("interrupted", self.interrupts.exit_code)
        self.progress.update(self.states, force=True)

    def _register(self, account: str) -> None:
        more = {"digest": code_digest(), "paused": self.steering.paused}
        self.cluster.pool(account, member_of(self.accounts[account]) | more)

    def _fill(self) -> None:
        """Keeps twice as much under way as there are slots, here and at each account; parts go before predictions."""
        for account, states in asking(self.states).items():
            cap = min(lane.cap for state in states if (lane := state.plan.run.lane))
            while self.calling[account] < 2 * cap and (waiting := [state for state in states if state.queue]):
                self._send(min(waiting, key=lambda state: state.in_flight))
        while self.predicting + self.scoring < 2 * self.cluster.slots:
            sending = next((state for state in self.states if state.queue and state.plan.run.lane is None), None)
            if self.ready and (self.scoring < self.cluster.slots or sending is None):
                self.scoring += 1
                self.cluster.score(self.ready.pop())
            elif sending is not None:
                self._send(sending)
            else:
                return

    def _send(self, state: RunState) -> None:
        made, corpus = state.plan, self.plan.corpus
        share = 1
        if made.run.lane is None:
            share = math.ceil(sum(len(other.queue) for other in self.states) / (4 * self.cluster.slots))
        again = state.queue[0] in made.again
        positions: list[int] = []
        while state.queue and len(positions) < min(BATCH, share) and (state.queue[0] in made.again) == again:
            positions.append(state.queue.popleft())
        batch = PredictBatch(self.plan.out, made.run, tuple(corpus.doc(position) for position in positions), again)
        state.in_flight += len(positions)
        state.started = state.started or time.monotonic()
        state.worked = True
        self._hand_out(batch)

    def _hand_out(self, batch: PredictBatch) -> None:
        if batch.run.lane is None:
            self.predicting += 1
        else:
            self.calling[batch.run.lane.account] += 1
        self.cluster.send(batch)

    def _came_back(self, batch: PredictBatch) -> None:
        if batch.run.lane is None:
            self.predicting -= 1
        else:
            self.calling[batch.run.lane.account] -= 1

    def _take(self, ended: Ended) -> None:
        if isinstance(ended, Predicted):
            self._take_predicted(ended)
        elif isinstance(ended, Graded):
            self._take_graded(ended)
        elif isinstance(ended, Summed):
            self._take_summed(ended)
        elif isinstance(ended.work, PredictBatch):
            self._take_lost_batch(ended.work, ended.reason)
        else:
            self._take_lost_task(ended.work, ended.reason)

    # --- predictions ----------------------------------------------------------------------------------------------

    def _take_predicted(self, ended: Predicted) -> None:
        self._came_back(ended.batch)
        self._take_in(ended)

    def _take_in(self, ended: Predicted) -> None:
        state = self.by_name[ended.batch.run.name]
        state.in_flight -= len(ended.batch.docs)
        for receipt in ended.receipts:
            self._recorded(state, receipt)
            self._settled(state, receipt.doc_id)
        if ended.stopped is not None:
            recorded = {receipt.doc_id for receipt in ended.receipts}
            for doc in ended.batch.docs:
                if doc.doc_id not in recorded:
                    self._settled(state, doc.doc_id)
            self._stop_account(state, ended.stopped)

    def _recorded(self, state: RunState, receipt: Receipt) -> None:
        """Takes a receipt in place of what was known of its document."""
        self._forget(state, receipt.doc_id)
        state.undone.discard(receipt.doc_id)
        position = self.positions[receipt.doc_id]
        doc_id = self.plan.corpus.ids[position]
        state.plan.receipts[doc_id] = receipt.kept(doc_id)
        state.fresh.append(receipt)
        if position in self.selected:
            state.count(receipt)

    def _forget(self, state: RunState, doc_id: str) -> None:
        known = state.plan.receipts.pop(doc_id, None)
        position = self.positions[doc_id]
        if known is not None and position in self.selected and position not in state.plan.again:
            state.count(known, -1)
        state.plan.again.discard(position)

    def _settled(self, state: RunState, doc_id: str) -> None:
        """The document will not be waited for any more; the last of a part makes the part ready."""
        home = self.plan.homes[self.positions[doc_id]]
        state.left[home] -= 1
        if not state.left[home]:
            del state.left[home]
            self._make_ready(state, home)

    def _stop_account(self, state: RunState, error: OebError) -> None:
        """Nothing more is sent for the account's runs, or for the one at its limit; what is recorded is scored."""
        for other in self.states:
            alike = other is state if isinstance(error, LimitReached) else same_account(other, state)
            if alike and other.stopped is None:
                other.stopped = error
                unsent = list(other.queue)
                other.queue.clear()
                for position in unsent:
                    self._settled(other, self.plan.corpus.ids[position])

    def _take_lost_batch(self, batch: PredictBatch, reason: str) -> None:
        """Sends the documents again, alone from the second loss on; one that kills its worker each time has failed."""
        self._came_back(batch)
        state = self.by_name[batch.run.name]
        key = (batch.run.name, *(doc.doc_id for doc in batch.docs))
        self.lost[key] += 1
        if state.stopped is not None:
            state.in_flight -= len(batch.docs)
            for doc in batch.docs:
                self._settled(state, doc.doc_id)
        elif batch.run.lane is not None:  # claims say what may be sent again, and a pool's death is no document's fault
            self._register(batch.run.lane.account)
            self._hand_out(batch)
        elif len(batch.docs) == 1 and self.lost[key] >= ATTEMPTS:
            why = f"its worker was lost {ATTEMPTS} times; last: {reason}"
            self._take_in(Predicted(batch, tuple(do_give_up(batch, why))))
        else:
            self.progress.note(f"a worker was lost ({reason}); its work is done again")
            alone = self.lost[key] > 1 and len(batch.docs) > 1
            for docs in [(doc,) for doc in batch.docs] if alone else [batch.docs]:
                self._hand_out(PredictBatch(batch.out, batch.run, docs, batch.again))

    # --- parts ----------------------------------------------------------------------------------------------------

    def _make_ready(self, state: RunState, home: layout.Home) -> None:
        for scorer in self.plan.selection.scorers:
            self._make_part_ready(state, Part(scorer, home))

    def _make_part_ready(self, state: RunState, part: Part) -> None:
        if self.ready.add(state.plan, part):
            state.scoring[part] += 1
            state.worked = True
        else:
            state.parts -= 1

    def _take_graded(self, ended: Graded) -> None:
        self.scoring -= 1
        if ended.failed is not None:
            raise ended.failed
        assert ended.receipt is not None
        state = self.by_name[ended.receipt.run]
        state.scoring[Part(ended.task.scorer, layout.Home(ended.task.suite, ended.task.part))] -= 1
        self.notes.say(ended.receipt.notes)
        if ended.receipt.broken:
            self._repair(state, ended.task, ended.receipt.broken)
            return
        state.parts_done += 1
        for path, sha256 in ended.receipt.digests.items():
            self.plan.files.note(path, self.plan.corpus.stamps[path], sha256)

    def _repair(self, state: RunState, task: PartTask, broken: Sequence[str]) -> None:
        """A record whose prediction is another one is not done: it is read once more, else the document asked again."""
        home = layout.Home(task.suite, task.part)
        for doc_id in broken:
            found = read_receipt(self.plan.out, state.name, doc_id)
            if found is not None:  # another driver has asked again meanwhile
                self._recorded(state, found)
                continue
            self._forget(state, doc_id)
            state.undone.add(doc_id)
            position = self.positions[doc_id]
            if position in state.plan.again:  # another scorer's part has found it out
                continue
            unasked = self.plan.selection.score_only or position not in self.selected or state.plan.run.lane  # it costs
            if state.stopped or unasked or (state.name, doc_id) in self.repaired:
                self.progress.note(f"{state.name}: {doc_id!r} is not done: its record names another prediction")
                continue
            self.repaired.add((state.name, doc_id))
            merge_index(self.plan.out, state.name, (), without=frozenset({doc_id}))
            state.plan.again.add(position)
            state.queue.append(position)
            state.left[home] += 1
        if not state.left[home]:
            self._make_ready(state, home)

    def _take_lost_task(self, task: PartTask | SummaryTask, reason: str) -> None:
        scored = (task.scorer, task.suite, task.part) if isinstance(task, PartTask) else ("summary.json",)
        key = (task.run.name, *scored)
        self.lost[key] += 1
        if self.lost[key] >= ATTEMPTS:
            raise InternalError(f"the worker that makes {' '.join(key)} was lost {ATTEMPTS} times; last: {reason}")
        if isinstance(task, PartTask):
            self.progress.note(f"a worker was lost ({reason}); its work is done again, document by document")
            self.cluster.score(replace(task, limit=self.cluster.memory // self.lost[key]))
        else:
            self.progress.note(f"a worker was lost ({reason}); its work is done again")
            self.cluster.summarise(task)

    # --- ending ---------------------------------------------------------------------------------------------------

    def _finish_ended(self) -> None:
        for state in self.states:
            busy = state.queue or state.in_flight or state.scoring.total() or state.summarising
            if state.summary is None and not busy:
                self._summarise(state)

    def _summarise(self, state: RunState) -> None:
        """Has what is derived written, unless it is there; anew where another driver has recorded more."""
        plan, made = self.plan, state.plan
        self._write_fresh(state)
        if state.worked and self._take_what_others_recorded(state):
            return
        if not state.worked and (found := known(plan, made)):
            state.end(plan, found)
            return
        state.summarising = True
        self.cluster.summarise(summary_task(plan, made, state.undone))

    def _take_summed(self, ended: Summed) -> None:
        state = self.by_name[ended.task.run.name]
        state.summarising = False
        if isinstance(ended.failed, DamagedPart):
            self._score_again(state, ended.failed)
        elif ended.failed is not None:
            raise ended.failed
        else:
            finish(self.plan, state.plan, ended.written)
            state.end(self.plan, ended.written)

    def _take_what_others_recorded(self, state: RunState) -> bool:
        """Looks once more at what is recorded; documents of another driver are scored with ours."""
        wanted = self.positions.keys() - state.undone if state.undone else self.positions.keys()
        homes = set()
        for receipt in stored_receipts(self.plan.out, state.name, wanted, state.plan.receipts).values():
            self._recorded(state, receipt)
            homes.add(self.plan.homes[self.positions[receipt.doc_id]])
        state.fresh.clear()  # they come from the index or are read from their records next time
        state.parts += len(homes) * len(self.plan.selection.scorers)
        for home in homes:
            self._make_ready(state, home)
        return bool(homes)

    def _score_again(self, state: RunState, damaged: DamagedPart) -> None:
        self.lost[damaged.address] += 1
        if self.lost[damaged.address] >= ATTEMPTS:
            raise damaged
        self.progress.note(f"{damaged}; it is made again")
        folder = storage.join(self.plan.out, state.name)
        for scorer in self.plan.selection.scorers:
            table = storage.join(folder, layout.below(scorer, layout.SCORES))
            home = layout.home_of_key(damaged.address.removeprefix(f"{table}/"))
            if home is not None:
                state.parts += 1
                self._make_part_ready(state, Part(scorer, home))

    def _flush(self, age: float) -> None:
        for state in self.states:
            if time.monotonic() - state.flushed >= age:
                self._write_fresh(state)

    def _write_fresh(self, state: RunState) -> None:
        if state.fresh:
            add_to_index(self.plan.out, state.name, state.fresh)
            state.fresh.clear()
            state.flushed = time.monotonic()

    def fail(self) -> None:
        """The job cannot go on; what is being paid for is recorded all the same, as far as storage lets it."""
        with suppress(OebError, KeyboardInterrupt):
            self._end(FAILING_SECONDS if self.calling.total() else 0.0)

    def stop(self, exit_code: int) -> None:
        """Interrupted: waits for what is under way, for its grace or until a second interrupt."""
        self._end(GRACE_SECONDS.get(exit_code, 0.0))

    def _end(self, grace: float) -> None:
        for state in self.states:
            state.queue.clear()
        self.ready.clear()
        self.cluster.hold()
        until = time.monotonic() + grace
        try:
            while self.cluster.under_way and time.monotonic() < until:
                for ended in self.cluster.wait(0.5):
                    if isinstance(ended, Predicted):
                        for receipt in ended.receipts:
                            self._recorded(self.by_name[ended.batch.run.name], receipt)
        finally:
            with suppress(OebError):  # receipts are made again from the records
                self._flush(0)
