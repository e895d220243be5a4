"""The chart of deploy/helm: rendered by helm, judged by the schemas of Kubernetes, and compared with compose."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from deploy_files import DEPLOY, PARTS, compose_command, read_compose

CHART, HELM = DEPLOY / "helm/facho", Path(sys.executable).with_name("helm")
NEEDED = {"image.repository": "registry.example.net/facho", "image.tag": "v1", "existingSecret": "facho-keys"}
NEEDED["host"] = "facho.example.net"
EVERYTHING = {
    **{f"{part}.enabled": True for part in ("beat", "traps", "ingress")},
    "ingress": {"enabled": True, "className": "nginx", "tlsSecret": "tls", "annotations": {"a/b": "c"}},
    "settings": {"FACHO_POLLERS": 20, "FACHO_POLLER_GROUPS": "norte:10", "FACHO_LANGUAGE": "pt-br"},
    "secretSettings": {"FACHO_HEARTBEAT_URL": {"name": "further", "key": "heartbeat"}},
    "definitions": {"mine.yaml": "name: mine\n"},
    "workers": [{"group": "", "replicas": 2}, {"group": "norte", "replicas": 1, "nodeSelector": {"site": "norte"}}],
    "web": {"trustedProxies": "10.0.0.0/8"},
    "imagePullSecrets": [{"name": "registry"}],
}
# The oldest that the chart accepts, and a recent one.
VERSIONS = ("1.25", "1.31", "1.34")


def helm(folder: Path, *arguments: str | Path, **values: Any) -> "subprocess.CompletedProcess[str]":
    """Run helm with values; it finds no configuration and no cluster of whoever runs the tests."""
    file = folder / "values.yaml"
    file.write_text(yaml.safe_dump(nested(values)))
    environ = {"HOME": str(folder), "PATH": "/usr/bin:/bin"}
    return subprocess.run(
        [HELM, *arguments, CHART, "--values", file], env=environ, capture_output=True, text=True, check=False
    )


def nested(values: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        first, _dot, rest = name.partition(".")
        if rest:
            found.setdefault(first, {})[rest] = value
        else:
            found[first] = value if not isinstance(value, dict) else {**found.get(first, {}), **value}
    return found


def render(folder: Path, **values: Any) -> list[dict[str, Any]]:
    done = helm(folder, "template", "facho", **{**NEEDED, **values})
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def of_kind(documents: list[dict[str, Any]], kind: str) -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"].removeprefix("facho-"): each for each in documents if each["kind"] == kind}


def pods(documents: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return every pod that would run, by its part."""
    found = {**of_kind(documents, "Deployment"), **of_kind(documents, "Job")}
    return {name: each["spec"]["template"]["spec"] for name, each in found.items()}


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return render(tmp_path_factory.mktemp("helm"), **EVERYTHING)


def test_helm_finds_nothing_to_complain_about(tmp_path: Path) -> None:
    done = helm(tmp_path, "lint", "--strict", **{**NEEDED, **EVERYTHING})

    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_accepts_every_object_as_it_stands(everything: list[dict[str, Any]], version: str) -> None:
    for document in everything:
        kubernetes_validate.validate(document, version, strict=True)

    assert len(everything) == 15


def test_the_schemas_notice_a_misspelt_field(everything: list[dict[str, Any]]) -> None:
    broken = {**everything[-1], "spec": {**everything[-1]["spec"], "bakoffLimit": 5}}

    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, VERSIONS[-1], strict=True)


@pytest.mark.parametrize("name", sorted(NEEDED))
def test_nothing_is_rendered_without_what_only_an_operator_knows(tmp_path: Path, name: str) -> None:
    done = helm(tmp_path, "template", "facho", **{each: value for each, value in NEEDED.items() if each != name})

    assert done.returncode != 0
    assert f"{name}:" in done.stderr


@pytest.mark.parametrize(
    "wrong",
    [
        {"wbe": {"replicas": 1}},
        {"settings": {"DATABASE_URL": "postgresql://facho:secret@db/facho"}},
        {"workers": [{"group": "Norte!", "replicas": 1}]},
        {"definitions": {"../x.yaml": ""}},
    ],
)
def test_values_that_mean_nothing_are_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    assert "don't meet the specifications" in helm(tmp_path, "template", "facho", **NEEDED, **wrong).stderr


def test_every_part_starts_what_compose_starts(everything: list[dict[str, Any]]) -> None:
    started = {name: pod["containers"][0]["command"] for name, pod in pods(everything).items()}

    assert started.keys() == {*PARTS, "worker-norte", "migrate"}
    assert {part: started[part] for part in PARTS} == {part: compose_command(part) for part in PARTS}
    assert started["migrate"] == read_compose()["services"]["migrate"]["command"]
    assert "--queues=snmp_default.norte,snmp_retry.norte,snmp_highprio.norte" in started["worker-norte"]
    assert pods(everything)["worker-norte"]["nodeSelector"] == {"site": "norte"}


def test_beat_and_the_receiver_of_traps_are_left_out_unless_wanted(tmp_path: Path) -> None:
    documents = render(tmp_path)

    assert pods(documents).keys() == {"web", "scheduler", "worker", "migrate"}
    assert not of_kind(documents, "Ingress")
    assert of_kind(documents, "Service").keys() == {"web"}


def test_every_pod_is_closed(everything: list[dict[str, Any]]) -> None:
    for pod in pods(everything).values():
        (container,) = pod["containers"]
        inside, around = container["securityContext"], pod["securityContext"]
        assert (around["runAsNonRoot"], around["runAsUser"], around["seccompProfile"]["type"]) == (
            True,
            10001,
            "RuntimeDefault",
        )
        assert inside == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert pod["automountServiceAccountToken"] is False
        assert container["resources"]["limits"]["memory"] if "limits" in container.get("resources", {}) else True
        written = [volume for volume in pod["volumes"] if "emptyDir" in volume]
        assert all("sizeLimit" in volume["emptyDir"] for volume in written)
        assert not any("persistentVolumeClaim" in volume or "hostPath" in volume for volume in pod["volumes"])


def test_secrets_come_from_the_secret_alone(everything: list[dict[str, Any]]) -> None:
    for pod in pods(everything).values():
        given = {each["name"]: each for each in pod["containers"][0]["env"]}
        sources = {name: each["valueFrom"]["secretKeyRef"] for name, each in given.items() if "valueFrom" in each}
        assert sources == {
            "DATABASE_URL": {"name": "facho-keys", "key": "database-url"},
            "REDIS_URL": {"name": "facho-keys", "key": "redis-url"},
            "FACHO_HEARTBEAT_URL": {"name": "further", "key": "heartbeat"},
        }
        (keys,) = [volume["secret"] for volume in pod["volumes"] if volume["name"] == "keys"]
        assert (keys["secretName"], keys["defaultMode"]) == ("facho-keys", 0o440)
        assert given["FACHO_SECRET_KEY_FILE"]["value"] == "/run/secrets/facho/secret-key"
    assert not of_kind(everything, "Secret")


def test_the_database_is_migrated_before_a_version_starts_and_two_never_run_at_once(
    everything: list[dict[str, Any]],
) -> None:
    (job,) = of_kind(everything, "Job").values()

    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    assert {each["spec"]["strategy"]["type"] for each in of_kind(everything, "Deployment").values()} == {"Recreate"}
    # It exists before everything that is no hook.
    assert {volume["name"] for volume in pods(everything)["migrate"]["volumes"]} == {"keys", "data", "tmp"}


def test_the_web_alone_is_asked_over_http(everything: list[dict[str, Any]]) -> None:
    probed = {
        name: pod["containers"][0] for name, pod in pods(everything).items() if "livenessProbe" in pod["containers"][0]
    }

    (web,) = probed.values()
    paths = {name: web[name]["httpGet"]["path"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert paths == {"startupProbe": "/livez", "livenessProbe": "/livez", "readinessProbe": "/readyz"}
    hosts = {each["value"] for name in paths for each in web[name]["httpGet"]["httpHeaders"]}
    (allowed,) = (each["value"] for each in web["env"] if each["name"] == "FACHO_ALLOWED_HOSTS")
    assert hosts <= set(allowed.split(","))
    assert {"name": "FORWARDED_ALLOW_IPS", "value": "10.0.0.0/8"} in web["env"]


def test_who_may_come_in_reaches_what_answers(everything: list[dict[str, Any]]) -> None:
    labels = {
        name: each["spec"]["template"]["metadata"]["labels"] for name, each in of_kind(everything, "Deployment").items()
    }

    def chosen(selector: dict[str, str]) -> set[str]:
        return {name for name, own in labels.items() if selector.items() <= own.items()}

    services, policies = of_kind(everything, "Service"), of_kind(everything, "NetworkPolicy")
    assert {name: chosen(each["spec"]["selector"]) for name, each in services.items()} == {
        "web": {"web"},
        "traps": {"traps"},
    }
    # An OLT is known by the address that its trap comes from.
    assert services["traps"]["spec"]["externalTrafficPolicy"] == "Local"
    open_to = {name: each["spec"].get("ingress") for name, each in policies.items()}
    assert open_to["closed"] is None
    assert chosen(policies["closed"]["spec"]["podSelector"]["matchLabels"]) == labels.keys()
    assert {name: chosen(policies[name]["spec"]["podSelector"]["matchLabels"]) for name in ("web", "traps")} == {
        "web": {"web"},
        "traps": {"traps"},
    }


def test_a_definition_of_ones_own_stands_where_the_product_reads_it(everything: list[dict[str, Any]]) -> None:
    assert of_kind(everything, "ConfigMap")["definitions"]["data"] == {"mine.yaml": "name: mine\n"}
    mounts = {each["mountPath"] for each in pods(everything)["worker"]["containers"][0]["volumeMounts"]}
    assert "/var/lib/facho/definitions" in mounts


def test_the_values_of_the_page_are_enough(tmp_path: Path) -> None:
    page = (DEPLOY.parent / "docs/operations.md").read_text()
    (values,) = re.findall(r"```yaml\n(.*?)```", page.split("### With Helm")[1], re.DOTALL)
    file = tmp_path / "my-values.yaml"
    file.write_text(values)

    done = helm(tmp_path, "template", "facho", "--values", file)

    assert "Ingress" in {each["kind"] for each in yaml.safe_load_all(done.stdout)}, done.stderr
    # As the Secret of the page has them.
    keys = {"database-url", "redis-url", "secret-key", "encryption-keys"}
    assert all(f"key: {key}" in done.stdout for key in keys)
