"""`oeb harbor`: task folders for coding agents, their verifier, and jobs that ran them."""

from __future__ import annotations

import argparse
from typing import Any

from ..errors import RequestError
from ..jsontext import visible
from .base import declare, note


def add(commands: Any) -> None:
    """Declares `oeb harbor`."""
    parser = declare(
        commands, "harbor", "Task folders for coding agents: write, check, verify, run, import.",
        "oeb harbor export --out tasks/ --limit 10 corpus=sample",
    )  # fmt: skip
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    _add_export(actions)
    check = declare(actions, "check", "Hash the files of exported tasks again and name every difference and leak.",
                    "oeb harbor check tasks/")  # fmt: skip
    check.add_argument("folder", metavar="DIR|URL", help="what `oeb harbor export` wrote")
    check.set_defaults(command=_check)
    verify = declare(
        actions, "verify", "Judge one output of a task: writes reward.txt, metrics.json and feedback.json.",
        "oeb harbor verify tasks/tasks/inv-2024-0093 --output output.json --logs verifier/",
    )  # fmt: skip
    verify.add_argument("task", metavar="DIR", help="the task's folder")
    verify.add_argument("--output", required=True, metavar="FILE", help="what the agent left; need not exist")
    verify.add_argument("--logs", required=True, metavar="DIR", help="where the three files go")
    verify.add_argument("--timeout", type=float, metavar="S", help="seconds that scoring may take; default 1700")
    verify.set_defaults(command=_verify)
    _add_run(actions)
    take = declare(actions, "import", "Take over a Harbor job: a run per agent and model, its rewards beside ours.",
                   "oeb harbor import jobs/2026-11-30 --tasks tasks/ --out runs/")  # fmt: skip
    take.add_argument("job", metavar="DIR|URL", help="the job's folder: config.json and the trials are in it")
    take.add_argument("--tasks", metavar="DIR|URL", help="the folder of the tasks that it ran")
    take.add_argument("--manifest", metavar="FILE|URL", help="or the corpus that they were exported from")
    take.add_argument("--data-root", metavar="DIR|URL", help="where the manifest's relative paths start")
    take.add_argument("--out", default="runs", metavar="DIR|URL", help="where runs go; default runs")
    take.set_defaults(command=_import)


def _add_export(actions: Any) -> None:
    export = declare(actions, "export", "Write a Harbor task for each document of a corpus.",
                     "oeb harbor export --out tasks/ --limit 10 corpus=sample")  # fmt: skip
    export.add_argument("--out", required=True, metavar="DIR|URL", help="where tasks/ and the manifest go")
    export.add_argument("--org", default="oeb", metavar="NAME", help="first part of the tasks' names; default oeb")
    export.add_argument("--today", metavar="YYYY-MM-DD", help="the day that two-digit years are read by")
    export.add_argument("--leave-out", action="store_true", help="pass over documents that no task can be made of")
    export.add_argument("--manifest", metavar="FILE|URL", help="a corpus of your own")
    export.add_argument("--repo", metavar="ORG/NAME[@REV]", help="a dataset of the Hugging Face hub")
    export.add_argument("--data-root", metavar="DIR|URL", help="where the manifest's relative paths start")
    export.add_argument("--suites", nargs="+", metavar="SUITE", help="these suites only")
    export.add_argument("--only", nargs="+", metavar="DOC_ID", help="these documents only")
    export.add_argument("--limit", type=int, metavar="N", help="the first N documents; 0: all")
    export.add_argument(
        "overrides", nargs="*", metavar="key=value", help="any value of the config, such as corpus=sample"
    )
    export.set_defaults(command=_export)


def _add_run(actions: Any) -> None:
    run = declare(actions, "run", "Run tasks with an agent, each in a closed room, and judge what it leaves; resumes.",
                  "oeb harbor run tasks/ --agent oracle -n 8 --out runs/")  # fmt: skip
    run.add_argument("tasks", metavar="DIR|URL", help="a folder of tasks; hf://ORG/NAME@REV is a dataset of the hub")
    run.add_argument("--agent", default="oracle", metavar="NAME",
                     help="oracle, nop, codex, claude-code, or a config of your own; default oracle")  # fmt: skip
    run.add_argument("--model", "-m", metavar="NAME", help="the model that the agent is to use")
    run.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="HOST",
        help="a host that it may reach, instead of its config's; repeatable",
    )
    run.add_argument("--limit", "-l", type=int, metavar="N", help="the first N tasks; 0: all")
    run.add_argument("--only", nargs="+", metavar="TASK", help="these tasks only")
    run.add_argument("-n", type=int, default=4, metavar="N", help="tasks at once; default 4")
    run.add_argument("--timeout", type=float, metavar="S", help="seconds for each task; default 1800")
    run.add_argument("--out", default="runs", metavar="DIR|URL", help="where the run goes; default runs")
    run.add_argument("--retry-failed", nargs="?", const="transient", metavar="transient|all")
    run.add_argument("-y", "--yes", action="store_true", help="do not ask before beginning")
    run.add_argument("--config-dir", metavar="DIR", help="more configs: a folder with provider/ and so on")
    run.add_argument("overrides", nargs="*", metavar="key=value", help="any value of the config")
    run.set_defaults(command=_run)


def _run(given: argparse.Namespace) -> int:
    from ..harbor.agents import job_for
    from .job import run_and_print

    job = job_for(
        given.tasks,
        given.agent,
        model=given.model,
        hosts=given.allow_host,
        at_once=given.n,
        values={
            "storage.root": given.out,
            "limit": given.limit,
            "only": given.only,
            "timeout": given.timeout,
            "retry_failed": given.retry_failed,
            "confirm": False if given.yes or given.agent in ("oracle", "nop") else None,
        },
        overrides=given.overrides,
        config_dir=given.config_dir,
    )
    faults = 0

    def judge(plan: Any) -> None:
        from ..harbor.rewards import judge_run, summary_of

        nonlocal faults
        for made in plan.runs:
            rows = judge_run(plan.out, made.run.name, plan.corpus)
            for row in rows:
                if row["status"] != "scored":
                    print(visible(f"{row['task']}: {row['status']}: {row['why']}"))
            told = summary_of(rows)
            faults += told["fault"]
            print(f"mean reward {told['mean_reward']:.4f} over {told['tasks']} tasks; "
                  f"{told['scored']} scored, {told['zero']} without a usable output, "
                  f"{told['fault']} verifier faults and {told['not run']} not run count 0")  # fmt: skip

    code = run_and_print(job, after=judge)
    return code or (1 if faults else 0)


def _import(given: argparse.Namespace) -> int:
    import sys

    from .. import progress
    from ..corpus.manifest import load
    from ..corpus.tasks import MANIFEST
    from ..harbor.agents import tasks_at
    from ..harbor.imports import import_job

    if (given.tasks is None) == (given.manifest is None):
        raise RequestError("give the tasks that the job ran, or with --manifest what they were exported from")
    manifest = given.manifest or f"{tasks_at(given.tasks)}/{MANIFEST}"
    screen = progress.Screen(sys.stderr)
    corpus = load(manifest, data_root=given.data_root)
    with screen:
        imported = import_job(given.job, given.out, corpus, screen)
    for one in imported:
        for row in one.odd:
            print(visible(f"{row['trial']}: {row['odd']}"))
        for row in one.other:
            print(visible(f"{row['trial']}: reward {row['reward_there']} there, {row['reward_here']} here"))
        here = "none" if one.mean_here is None else f"{one.mean_here:.4f}"
        print(f"{len(one.rows)} trials: mean reward {one.mean_there:.4f} there, {here} here; {len(one.odd)} odd, "
              f"{sum(row['reward_there'] is None for row in one.rows)} without a reward, which count 0")  # fmt: skip
        print(one.run)
    return 4 if any(one.other for one in imported) else 0


def _export(given: argparse.Namespace) -> int:
    from ..harbor.export import export_tasks
    from ..harbor.tasks import TODAY
    from ..request import job_of
    from ..run import loaded_corpus

    job = job_of(
        None,
        values={"suites": given.suites, "only": given.only, "limit": given.limit},
        manifest=given.manifest,
        repo=given.repo,
        data_root=given.data_root,
        overrides=given.overrides,
    )
    exported = export_tasks(
        loaded_corpus(job), given.out, org=given.org, today=given.today or TODAY, leave_out=given.leave_out
    )
    for text in exported.left_out:
        note(f"left out: {text}")
    print(f"{len(exported.tasks)} tasks")
    print(exported.address)
    return 0


def _check(given: argparse.Namespace) -> int:
    from ..harbor.manifest import differences, read_manifest

    found = 0
    for text in differences(given.folder):
        print(visible(text))
        found += 1
    print(f"{len(read_manifest(given.folder)['tasks'])} tasks, {found} differences")
    return 4 if found else 0


def _verify(given: argparse.Namespace) -> int:
    import os

    from ..harbor.tasks import REFERENCE
    from ..harbor.verifier import SECONDS, Fault, verify

    reference = os.path.join(given.task, REFERENCE)
    if not os.path.isfile(reference):
        raise RequestError(f"{reference} is not there; give the folder of one task")
    try:
        reward = verify(reference, given.output, given.logs, seconds=given.timeout or SECONDS)
    except Fault as fault:
        note(f"oeb: no reward: {fault}")
        return 1
    print(reward)
    return 0
