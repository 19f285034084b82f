"""Configs: every file composes, numbers keep their meaning, and wrong words get one clear message."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from oeb_ray import plan
from oeb_ray.config import composed, conf_dir, read_job
from oeb_ray.errors import RequestError
from oeb_ray.providers.registry import ALL_PROVIDERS, settings_class, settings_for
from oeb_ray.request import job_of

VECTORS = json.loads((Path(__file__).parent / "data" / "run_names.json").read_text())
# Whole numbers for float settings are taken as floats; other mismatches of type are refused.
RENAMED = {
    ("datalab", '{"poll_interval": 5}'): "datalab-f46415c9",
    ("azure-cu", '{"poll_interval": 3}'): "azure-cu-dc0872ef",
}
REFUSED = {
    ("datalab", '{"mode": null}'),
    ("datalab", '{"poll_interval": "5"}'),
    ("datalab", '{"poll_interval": true}'),
    ("llamaextract", '{"poll_interval": 5.0}'),
    ("reducto", '{"poll_interval": 5.0}'),
    ("openai/gpt-5.6-sol", '{"max_output_tokens": 8000.0}'),
}


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["run_name"])
def test_run_names_are_the_known_ones(vector: dict[str, Any]) -> None:
    provider, options = vector["provider"], vector["options_given"]
    key = provider, json.dumps(options)
    if key in REFUSED:
        with pytest.raises(RequestError, match="wants"):
            plan.run_name(provider, options)
        return
    assert plan.run_name(provider, options) == RENAMED.get(key, vector["run_name"])
    if key not in RENAMED:
        assert json.dumps(settings_for(provider, options), sort_keys=True) == vector["canonical_json"]


def test_every_exception_to_the_vectors_is_met() -> None:
    keys = {(vector["provider"], json.dumps(vector["options_given"])) for vector in VECTORS}
    assert keys >= REFUSED | set(RENAMED)


GROUPS = {
    folder.name: sorted(path.stem for path in folder.glob("*.yaml"))
    for folder in conf_dir().iterdir()
    if folder.is_dir()
}
NEEDED = {
    "corpus=manifest": ["corpus.manifest=x"],
    "corpus=harbor": ["corpus.manifest=x/harbor-manifest.json"],
    "storage=s3": ["storage.root=s3://b"],
    "storage=gcs": ["storage.root=gs://b"],
    "storage=azure": ["storage.root=abfs://b"],
    "cluster=existing": ["cluster.address='h:1'"],
    "experiment=extractkit": ["score_only=true"],  # its keys are looked for where vendors would be called
}


@pytest.mark.parametrize(("group", "name"), [(group, name) for group, names in GROUPS.items() for name in names])
def test_every_file_composes(group: str, name: str) -> None:
    words = [f"{group}={name}" if group != "provider" else f"provider=[{name}]"]
    config = composed([*words, *NEEDED.get(words[0], [])])
    assert read_job(config).out


def test_provider_files_name_all_settings_and_no_default() -> None:
    for name in ALL_PROVIDERS:
        plain = OmegaConf.to_container(OmegaConf.load(conf_dir() / "provider" / f"{name}.yaml"))
        fields = {field.name for field in dataclasses.fields(settings_class(name))}
        assert fields <= set(plain), name
        assert all(plain[field] == "???" for field in fields), name


AGENTS = {"claude-code": "ANTHROPIC_API_KEY", "codex": "OPENAI_API_KEY"}


@pytest.mark.parametrize("agent", AGENTS)
def test_a_known_agent_is_a_command_with_its_key_and_the_one_host_that_it_needs(agent: str) -> None:
    entry = read_job(composed([f"provider=[{agent}]"])).providers["command"]
    assert entry["agent"] == agent and entry["keys"] == AGENTS[agent]
    assert "," not in entry["allow_hosts"] and "< instruction.md" in entry["command"]
    checked = subprocess.run(["sh", "-n", "-c", f"{entry['setup']}; {entry['command']}"], capture_output=True)
    assert checked.returncode == 0, checked.stderr


def test_all_providers_have_a_file_and_the_models_one_together() -> None:
    assert GROUPS["provider"] == sorted([*ALL_PROVIDERS, "openrouter", *AGENTS])
    plain = OmegaConf.to_container(OmegaConf.load(conf_dir() / "provider" / "openrouter.yaml"))
    fields = {field.name for field in dataclasses.fields(settings_class("org/model"))} - {"model"}
    assert fields <= set(plain) and all(plain[field] == "???" for field in fields)


def settings_of(word: str) -> dict[str, Any]:
    """The settings that a word of the command line gives to datalab."""
    job = read_job(composed(["provider=[datalab]", word]))
    entry = {k: v for k, v in job.providers["datalab"].items() if v is not None}
    options = entry.pop("options", [{}])
    return settings_for("datalab", {**entry, **options[0]})


@pytest.mark.parametrize("number", ["5", "5.0", "5e0", "5."])
def test_one_number_in_four_spellings_names_one_run(number: str) -> None:
    """BR-70"""
    from oeb_ray.providers.registry import name_of

    for word in (
        f"providers.datalab.poll_interval={number}",
        f"providers.datalab.options=[{{poll_interval: {number}}}]",
    ):
        assert name_of("datalab", settings_of(word)) == "datalab-f46415c9"


@pytest.mark.parametrize("value", ["05", "'5'", '"5.0"', "true", "null", "inf", "nan", "-1"])
def test_what_is_no_such_number_is_refused_with_key_value_and_type(value: str) -> None:
    """BR-70; 05 is a text in Hydra's grammar, 1_000 a number."""
    with pytest.raises(RequestError, match=r"poll_interval=.*(wants|must be)"):
        settings_of(f"providers.datalab.options=[{{poll_interval: {value}}}]")


@pytest.mark.parametrize("number", [5, 5.0])
def test_the_same_number_in_json_in_python_and_in_a_file_names_the_same_run(number: float, tmp_path: Path) -> None:
    """BR-70"""
    for options in ({"poll_interval": number}, [{"poll_interval": number}]):
        job = job_of(["datalab"], json.loads(json.dumps({"datalab": options})))
        assert names_of(job.providers) == ["datalab-f46415c9"]
    (tmp_path / "experiment").mkdir()
    for written in (f"{number}", "5e0", "5."):
        text = "# @package _global_\ndefaults: [override /provider: [datalab]]\n"
        text += f"providers: {{datalab: {{poll_interval: {written}}}}}\n"
        (tmp_path / "experiment" / "mine.yaml").write_text(text)
        assert names_of(read_job(composed(["experiment=mine"], str(tmp_path))).providers) == ["datalab-f46415c9"]


def test_wrong_numbers_of_all_kinds_come_in_one_message() -> None:
    """BR-70: each with its key, its value and the type wanted."""
    wrong = ["5", "5.0", True, float("inf"), float("nan"), -1, [5]]
    with pytest.raises(RequestError) as error:
        names_of(job_of(["datalab"], {"datalab": [{"poll_interval": value} for value in wrong]}).providers)
    lines = [line for line in str(error.value).splitlines() if "providers.datalab.poll_interval=" in line]
    assert len(lines) == len(wrong)
    assert all(repr(value) in line for value, line in zip(wrong, lines, strict=True))


def test_all_bad_options_come_in_one_message() -> None:
    entry = {"options": [{"poll_interval": "5"}, {"poll_interval": True}, {"Mode": "balanced"}, {"mode": True}, 7]}
    with pytest.raises(RequestError) as error:
        plan.expand({"replay": {"system": 3, "options": entry["options"]}, "nope": {}}, 60.0)
    message = str(error.value)
    for said in (
        "poll_interval: no such setting",
        "Mode: no such setting",
        "7 is no option set",
        "unknown provider 'nope'",
    ):
        assert said in message


@pytest.mark.parametrize(
    ("words", "providers"),
    [
        (["provider=[pdftext,replay]"], ["pdftext", "replay"]),
        (["provider=['pdftext','replay']"], ["pdftext", "replay"]),
        (["provider=[pdftext,pdftext]"], ["pdftext"]),
        (["provider=replay"], ["replay"]),
        (["provider=[]"], []),
        (["experiment=smoke"], ["pdftext"]),
    ],
)
def test_choosing_several_of_a_group(words: list[str], providers: list[str]) -> None:
    """BR-71"""
    try:
        job = read_job(composed(words))
    except RequestError as error:
        assert "Multiple values" in str(error) or "Duplicate" in str(error)
        return
    assert list(job.providers) == providers


def test_no_provider_is_refused() -> None:
    with pytest.raises(RequestError, match="no provider is chosen"):
        plan.expand(read_job(composed(["provider=[]"])).providers, 60.0)


@pytest.mark.parametrize(
    "word", ["~provider", "+provider=mistral", "providers.extend.x=1", "provider=datalb", "a b=1", "="]
)
def test_odd_words_end_in_a_message(word: str) -> None:
    """BR-71: the evident meaning, or one refusal; never another exception."""
    try:
        read_job(composed([word]))
    except RequestError as error:
        assert str(error)


WORDS = {"007": "007", "'0510'": "0510", "08": "08", "no": "no", "on": "on", "'1e3'": "1e3", "12:30": "12:30",
         "2024-01-01": "2024-01-01", "'null'": "null"}  # fmt: skip


@pytest.mark.parametrize(("given", "meant"), WORDS.items())
def test_names_that_yaml_reads_otherwise_are_kept_or_refused(given: str, meant: str, tmp_path: Path) -> None:
    """BR-73"""
    assert read_job(composed([f"suites=[{given}]"])).suites == [meant]
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "mine.yaml").write_text(f"# @package _global_\nsuites: [{given}]\n")
    try:
        suites = read_job(composed(["experiment=mine"], str(tmp_path))).suites
    except RequestError as error:
        assert "quote it" in str(error)
    else:
        assert suites == [meant]


@pytest.mark.parametrize("given", ["1e3", ".5", "null", "~", "7", "true"])
def test_names_that_are_no_texts_are_refused(given: str, tmp_path: Path) -> None:
    """BR-73, in a file; there all of them are something else to YAML."""
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "mine.yaml").write_text(f"# @package _global_\nsuites: [{given}]\n")
    with pytest.raises(RequestError, match="quote it"):
        read_job(composed(["experiment=mine"], str(tmp_path)))


def test_options_and_grids_expand_to_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for system in ("a", "b"):
        (tmp_path / "x" / system).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    runs, _ = plan.expand({"replay": {"grid": {"system": ["a", "b"]}, "folder": "x"}}, 60.0)
    assert [run.settings["system"] for run in runs] == ["a", "b"]
    assert all(run.options["folder"].startswith("/") for run in runs), "independent of the working folder"
    runs, _ = plan.expand(
        {"replay": {"folder": "x", "options": [{"system": "a"}, {"system": "a"}, {"system": "b"}]}}, 60.0
    )
    assert [run.settings["system"] for run in runs] == ["a", "b"], "what comes to the same settings is one run"
    runs, _ = plan.expand({"replay": {"options": [{"system": "a"}], "folder": "x", "seed": 7}}, 60.0)
    assert runs[0].name == plan.run_name("replay", {"system": "a"}), "run options are not in the name"


@pytest.mark.parametrize(
    "word", ["+providers.datalab.api_key=sk-0815", "storage.root=runs/sk-canary-0815", "+datalab_token=x"]
)
def test_a_secret_in_an_override_is_refused_and_not_repeated(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """BR-55"""
    monkeypatch.setenv("DATALAB_API_KEY", "sk-canary-0815")
    with pytest.raises(RequestError, match="secrets are refused") as error:
        composed(["provider=[datalab]", word])
    assert "0815" not in str(error.value)


def test_a_name_that_cannot_be_stored_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """BR-67: said with its length, never cut so that two could meet."""
    assert len(plan.run_name("org/" + "x" * 240)) == len("org__") + 240 + len("-12345678")
    monkeypatch.setattr(plan, "LONGEST_NAME", 10)
    (tmp_path / "a").mkdir()
    with pytest.raises(RequestError, match="name has 15 characters, at most 10 can be stored"):
        plan.expand({"replay": {"system": "a", "folder": str(tmp_path)}}, 60.0)


def test_what_must_be_given_is_named() -> None:
    with pytest.raises(RequestError, match=r"providers\.replay\.system: must be given"):
        plan.expand({"replay": {}}, 60.0)


# --- models, whose names hold slashes, dots and colons (BR-74) ---

SOL, FLASH = "openai/gpt-5.6-sol", "google/gemini-3.7-flash:free"
BY_NAME = {SOL: [{"attempts": 1}, {"max_output_tokens": 8000}]}
NAMES = ["openai__gpt-5.6-sol-a4b894b7", "openai__gpt-5.6-sol-8da1a635", "google__gemini-3.7-flash_free-1bb4840a"]


def names_of(providers: Any) -> list[str]:
    return [run.name for run in plan.expand(providers, 60.0, calls=False)[0]]


def test_models_are_named_on_the_command_line_in_a_file_and_from_python(tmp_path: Path) -> None:
    words = ["provider=[openrouter]", f"providers.openrouter.models=[{SOL},{FLASH}]"]
    own = f"providers.openrouter.options={{{SOL}: [{{attempts: 1}},{{max_output_tokens: 8000}}]}}"
    assert names_of(read_job(composed([*words, own])).providers) == NAMES
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "mine.yaml").write_text(
        f"""# @package _global_
defaults: [override /provider: [openrouter]]
providers:
  openrouter:
    models: [{SOL}, "{FLASH}"]
    options:
      {SOL}: [{{attempts: 1}}, {{max_output_tokens: 8000}}]
"""
    )
    assert names_of(read_job(composed(["experiment=mine"], str(tmp_path))).providers) == NAMES
    assert names_of({SOL: {"options": BY_NAME[SOL]}, FLASH: {}}) == NAMES
    assert names_of({"openrouter": {"models": [SOL, FLASH], "options": BY_NAME}}) == NAMES
    colon = r"providers.openrouter.options={google/gemini-3.7-flash\:free: [{attempts: 1}]}"
    (only,) = names_of(read_job(composed(["provider=[openrouter]", words[1].replace(f"{SOL},", ""), colon])).providers)
    assert only == plan.run_name(FLASH, {"attempts": 1})


def test_models_and_their_options_are_asked_for_by_name() -> None:
    job = job_of(["pdftext", SOL, FLASH], BY_NAME)
    assert names_of(job.providers) == ["pdftext-44136fa3", *NAMES]


def test_options_for_all_models_are_given_once() -> None:
    words = [
        "provider=[openrouter]", "providers.openrouter.models=org/one", "providers.openrouter.attempts=1",
        "providers.openrouter.base_url=http://gpu-node:8000/v1", "providers.openrouter.grid={max_output_tokens: [1,2]}",
    ]  # fmt: skip
    own = {"attempts": 1, "base_url": "http://gpu-node:8000/v1"}
    wanted = [plan.run_name("org/one", {**own, "max_output_tokens": number}) for number in (1, 2)]
    assert names_of(read_job(composed(words)).providers) == wanted
    (run,) = plan.expand({"openrouter": {"models": ["a/b"], "overlay": False, "in_flight": 2}}, 60.0, calls=False)[0]
    assert run.options["overlay"] is False and run.provider == "a/b"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], r"models=\[\]: wants a list of model ids, such as providers.openrouter.models=\[openai/"),
        (
            ["providers.openrouter.models=[gpt-5.6-sol,5,null]"],
            "'gpt-5.6-sol' is no model id; one is written org/model",
        ),
        ([f"providers.openrouter.models=[{SOL}]", "providers.openrouter.options={openai/gpt-5.6: []}"], "did you mean"),
        ([f"providers.openrouter.models=[{SOL}]", "providers.openrouter.options={attempts: x}"], "whole number"),
        ([f"providers.{SOL}.attempts=1"], "dots separate keys, so no model id can be one; write .*options="),
        (["providers.openai.gpt-5.6-sol.attempts=1"], "dots separate keys"),
        ([f"provider=[{SOL}]"], r"models are chosen with provider=\[openrouter\]"),
    ],
)
def test_models_written_otherwise_are_refused_with_the_right_way(words: list[str], said: str) -> None:
    with pytest.raises(RequestError, match=said):
        names_of(read_job(composed(["provider=[openrouter]", *words])).providers)


@pytest.mark.parametrize("word", ["limt=2", "+limt=2", "+cluster.cpsu=1", "+corpus.nam=x", "+foo=1"])
def test_unknown_keys_are_refused_with_the_full_key(word: str) -> None:
    key = word.lstrip("+").split("=")[0]
    with pytest.raises(RequestError, match=f"{key}: no such key; .*known:"):
        read_job(composed([word]))


@pytest.mark.parametrize(
    "word",
    ["corpus.data_root=5", "corpus.manifest=5", "+providers=5", "providers.pdftext=5", "cluster=null", "cluster.cpus=0",
     "cluster.cpus=abc", "cluster.cpus=1.5", "storage.root=''", "scorers=7", "limit=x", "verdicts=7"],
)  # fmt: skip
def test_values_of_another_kind_are_refused(word: str) -> None:
    with pytest.raises(RequestError):
        plan.expand(read_job(composed([word])).providers, 60.0)


def test_a_broken_file_of_the_users_is_refused(tmp_path: Path) -> None:
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "mine.yaml").write_text("# @package _global_\nsuites: [a\n")
    with pytest.raises(RequestError, match="refused"):
        composed(["experiment=mine"], str(tmp_path))
    with pytest.raises(RequestError, match="there is no such folder"):
        composed([], str(tmp_path / "none"))
