"""What people ask for by name becomes a job: the dataset card's names, option sets, numbers per provider."""

from __future__ import annotations

from typing import Any

import pytest

from oeb_ray.errors import RequestError
from oeb_ray.plan import expand
from oeb_ray.request import job_of, numbers_by_name


def runs_of(providers: list[str], options: dict[str, Any] | None = None) -> list[tuple[str, Any]]:
    runs, _ = expand(job_of(providers, options).providers, 60.0, calls=False)
    return [(run.provider, run.settings.get("mode")) for run in runs]


@pytest.mark.parametrize(
    ("providers", "options", "runs"),
    [
        (["datalab-accurate"], {}, [("datalab", "accurate")]),
        (["datalab", "datalab-accurate"], {}, [("datalab", "balanced"), ("datalab", "accurate")]),
        (["datalab", "datalab"], {}, [("datalab", "balanced")]),
        (["datalab"], {"datalab": [{"mode": "fast"}, {}]}, [("datalab", "fast"), ("datalab", "balanced")]),
        (["datalab-accurate"], {"datalab-accurate": {"poll_interval": 1}}, [("datalab", "accurate")]),
        (
            ["datalab", "datalab-accurate"],
            {"datalab": {"mode": "fast"}},
            [("datalab", "fast"), ("datalab", "accurate")],
        ),
    ],
)
def test_the_cards_names_and_options_make_runs(providers, options, runs) -> None:
    assert runs_of(providers, options) == runs


@pytest.mark.parametrize(
    ("given", "in_flight"),
    [
        (4, {"datalab": 4, "mistral": 4}),
        ({"datalab": 2}, {"datalab": 2, "mistral": None}),
        ({"*": 3, "mistral": 1}, {"datalab": 3, "mistral": 1}),
        ({"*": 3, "mistral": 0}, {"datalab": 3, "mistral": None}),
        ({"datalab-accurate": 2}, {"datalab": 2, "mistral": None}),
        (None, {"datalab": None, "mistral": None}),
    ],
)
def test_numbers_per_provider(given, in_flight) -> None:
    job = job_of(["datalab", "mistral", "pdftext"], in_flight=given)
    assert {name: job.providers[name].get("in_flight") for name in in_flight} == in_flight
    assert "in_flight" not in job.providers["pdftext"]


def test_models_share_an_entry_and_keep_their_options() -> None:
    """BR-74"""
    ids = ["google/gemini-3.7-flash:free", "openai/gpt-5.6-sol"]
    options = {ids[0]: {"attempts": 1}, "gpt": [{"attempts": 2}, {}]}
    job = job_of([ids[0], "gpt", "datalab"], options, in_flight={ids[0]: 4, "gpt": 2}, max_usd=1.5)
    runs, _ = expand(job.providers, 60.0, calls=False)
    assert [(run.provider, run.settings.get("attempts")) for run in runs if "/" in run.provider] == [
        (ids[0], 1), (ids[1], 2), (ids[1], 3),
    ]  # fmt: skip
    assert job.providers["openrouter"]["in_flight"] == 2
    assert job.providers["openrouter"]["max_usd"] == job.providers["datalab"]["max_usd"] == 1.5


def test_dollars_per_provider_may_be_none() -> None:
    job = job_of(["datalab"], max_usd={"datalab": 0})
    assert job.providers["datalab"]["max_usd"] == 0


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        (None, None),
        ("3", 3),
        ("2.5", 2.5),
        ("datalab=3,openai/gpt-5.6-sol=2", {"datalab": 3, "openai/gpt-5.6-sol": 2}),
        ("google/gemini-3.7-flash:free=1", {"google/gemini-3.7-flash:free": 1}),
        ("*=3,mistral=0", {"*": 3, "mistral": 0}),
    ],
)
def test_flags_with_numbers_by_name(text, numbers) -> None:
    """BR-74"""
    assert numbers_by_name("--predict-workers", text) == numbers


@pytest.mark.parametrize("text", ["", "x", "-1", "datalab:3", "datalab=", "=3", "3,4", "datalab=3;mistral=2", "a=1,2"])
def test_other_flags_say_what_separates(text) -> None:
    with pytest.raises(RequestError, match="separated by commas, the last = of each parts name and number"):
        numbers_by_name("--predict-workers", text)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"in_flight": {"mistral": 2}}, "in_flight of 'mistral', which is not among the providers to run: datalab"),
        ({"providers": ["datalab", "pdftext"], "in_flight": {"pdftext": 2}}, "it calls no vendor"),
        ({"manifest": "a", "repo": "b/c"}, "give one of them"),
        ({"options": {"reducto": {}}}, "options for 'reducto', which is not among the providers"),
        ({"providers": ["datlab"]}, "did you mean datalab"),
        ({"options": {"datalab": {"mode": "fast"}}, "overrides": ["limt=3"]}, "limt: no such key"),
    ],
)
def test_what_is_not_among_the_providers_is_refused(given, said) -> None:
    with pytest.raises(RequestError, match=said):
        job_of(**{"providers": ["datalab"], **given})


def test_a_key_among_the_options_is_refused_and_not_shown(monkeypatch) -> None:
    monkeypatch.setenv("DATALAB_API_KEY", "canary-4711")
    with pytest.raises(RequestError, match="keys are no part of a config") as error:
        job_of(["datalab"], {"datalab": {"base_url": "https://example.org/?k=canary-4711"}})
    assert "canary" not in str(error.value)
