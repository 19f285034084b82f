"""cluster.yaml: what Ray's own check says of it, for AWS as it is and for machines of one's own as its comments say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

FILE = Path(__file__).parent.parent / "cluster.yaml"


@pytest.fixture
def config() -> dict[str, Any]:
    return yaml.safe_load(FILE.read_text())  # type: ignore[no-any-return]


def checked(config: dict[str, Any]) -> dict[str, Any]:
    """The config with the defaults of its provider, after Ray's check; as `ray up` does first."""
    from ray.autoscaler._private.util import prepare_config, validate_config

    prepared: dict[str, Any] = prepare_config(config)
    validate_config(prepared)
    return prepared


def test_ray_takes_the_cluster_file(config) -> None:
    prepared = checked(config)
    assert prepared["head_node_type"] == "head" and prepared["max_workers"] == 50
    assert prepared["available_node_types"]["worker"]["min_workers"] == 1
    with pytest.raises(Exception, match="idle_minutes"):
        checked(config | {"idle_minutes": 5})


def test_ray_takes_it_for_machines_of_ones_own_as_its_comments_say(config) -> None:
    own = yaml.safe_load(re.search(r"# OWN: (\{.*\});", FILE.read_text())[1])  # type: ignore[index]
    kept = {key: value for key, value in config.items() if key not in ("available_node_types", "head_node_type")}
    prepared = checked(kept | {"provider": own, "min_workers": 2, "max_workers": 2})
    assert prepared["available_node_types"]["local.cluster.node"]["min_workers"] == 2


def test_ray_takes_it_for_google_cloud(config) -> None:
    google = yaml.safe_load(re.search(r"# GCP: (\{.*\})", FILE.read_text())[1])  # type: ignore[index]
    assert checked(config | {"provider": google})["provider"]["type"] == "gcp"


def test_no_node_is_open_or_holds_a_cloud_key(config) -> None:
    """BR-55: keys by file over ssh; every Ray with a token; the dashboard on the head's loopback alone."""
    for phase in ("head", "worker"):
        (start,) = [line for line in config[f"{phase}_start_ray_commands"] if "ray start" in line]
        assert "RAY_AUTH_MODE=token" in start and ". ~/.oeb.env" in start
    assert "--dashboard-host=127.0.0.1" in config["head_start_ray_commands"][1]
    assert config["file_mounts"]["~/.ray/auth_token"] == "~/.ray/auth_token"
    assert all("IamInstanceProfile" in kind["node_config"] for kind in config["available_node_types"].values())
    assert not re.search(r"AKIA|aws_secret|runtime_env:", FILE.read_text(), re.IGNORECASE)
