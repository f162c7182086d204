"""Sums up what gpu_check.sh left in a directory: the machine, the tests, the medians.

usage: gpu_report.py DIRECTORY RESULT [FAILED_STEP ...]
"""

import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as xml


def output_of(*command: str) -> str:
    """What a command prints, or nothing when it is missing or fails."""
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return result.stdout.strip() if result.returncode == 0 else ""


def machine() -> dict:
    fields = ["name", "driver_version", "compute_cap", "memory.total"]
    query = output_of(
        "nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader"
    )
    values = query.splitlines()[0].split(", ") if query else []
    nvcc = re.search(r"release [\d.]+, V([\d.]+)", output_of("nvcc", "--version"))
    return {
        "gpu": dict(zip(fields, values)),
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(
            timespec="seconds"
        ),
        "nvcc": nvcc.group(1) if nvcc else None,
        "compiler": output_of("c++", "--version").partition("\n")[0],
        # A copy of the tree may come without its history.
        "commit": os.environ.get("DEEP_JIT_COMMIT"),
    }


def remembered_machine(directory: pathlib.Path) -> dict:
    """Asked once for all reports of a run."""
    path = directory / "machine.json"
    if not path.exists():
        path.write_text(json.dumps(machine(), indent=2) + "\n")
    return json.loads(path.read_text())


def tests(directory: pathlib.Path) -> dict:
    """Counts of every JUnit file, by the runner's name, and which tests failed."""
    out = {}
    for path in sorted(directory.glob("*.xml")):
        try:
            root = xml.parse(path).getroot()
        except xml.ParseError:
            out[path.stem] = {"unreadable": path.stat().st_size}
            continue
        suite = root if "tests" in root.attrib else next(iter(root), root)
        keys = ("tests", "failures", "errors", "skipped", "disabled")
        out[path.stem] = {key: int(suite.get(key) or 0) for key in keys}
        cases = list(root.iter("testcase"))
        for kind, tags in (
            ("failed", ("failure", "error")),
            ("skipped_tests", ("skipped",)),
        ):
            names = [
                name_of(case)
                for case in cases
                if any(case.find(t) is not None for t in tags)
            ]
            if names:
                out[path.stem][kind] = names
        out[path.stem].update(noted(cases))
    return out


def name_of(case: xml.Element) -> str:
    return f"{case.get('classname', '')}.{case.get('name')}".lstrip(".")


def noted(cases: list) -> dict:
    """What tests recorded."""
    return {
        item.get("name"): item.get("value")
        for case in cases
        for item in case.iter("property")
    }


def medians(directory: pathlib.Path) -> dict:
    """Of every benchmark program: rows as it wrote them, the medians that Google Benchmark wrote,
    or its output as lines."""
    out = {}
    for log in sorted(directory.glob("bench_*.log")):
        report = log.with_suffix(".json")
        try:
            rows = json.loads(report.read_text())
        except (OSError, ValueError):
            out[log.stem] = log.read_text(errors="replace").splitlines()
            continue
        if "benchmarks" in rows:
            rows = {
                row["run_name"]: f"{row['real_time']:.4g} {row['time_unit']}"
                for row in rows["benchmarks"]
                if row.get("aggregate_name") == "median"
            }
        out[log.stem] = rounded(rows)
    return out


def rounded(value):
    """Numbers with four digits, all the way down."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return float(f"{value:.4g}") if isinstance(value, float) else value


def seconds(directory: pathlib.Path) -> dict:
    path = directory / "seconds.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return {name: int(count) for name, count in (line.split() for line in lines)}


def main() -> None:
    directory = pathlib.Path(sys.argv[1])
    report = {
        "machine": remembered_machine(directory),
        "failed_steps": sys.argv[3:],
        "seconds": seconds(directory),
        "tests": tests(directory),
        "medians": medians(directory),
    }
    text = json.dumps(report, indent=2)
    pathlib.Path(sys.argv[2]).write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
