"""Sums up what gpu_check.sh left in a directory: gpu.json, with the machine and the medians.

usage: gpu_report.py DIRECTORY [FAILED_STEP ...]
"""

import datetime
import json
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as xml


def output_of(*command: str) -> str:
    """What a command prints, or nothing when it is missing or fails."""
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return result.stdout.strip() if result.returncode == 0 else ""


def machine() -> dict:
    fields = ["name", "driver_version", "compute_cap", "memory.total"]
    query = output_of("nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader")
    values = query.splitlines()[0].split(", ") if query else []
    nvcc = re.search(r"release [\d.]+, V([\d.]+)", output_of("nvcc", "--version"))
    return {
        "gpu": dict(zip(fields, values)),
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "nvcc": nvcc.group(1) if nvcc else None,
        "compiler": output_of("c++", "--version").partition("\n")[0],
        "kernel": output_of("uname", "-r"),
        "commit": output_of("git", "rev-parse", "HEAD") or None,
    }


def tests(directory: pathlib.Path) -> dict:
    """Counts of every JUnit file, by the runner's name."""
    out = {}
    for path in sorted(directory.glob("*.xml")):
        root = xml.parse(path).getroot()
        suite = root if "tests" in root.attrib else next(iter(root), root)
        keys = ("tests", "failures", "errors", "skipped", "disabled")
        out[path.stem] = {key: int(suite.get(key, 0)) for key in keys}
    return out


def medians(directory: pathlib.Path) -> dict:
    """The medians that Google Benchmark wrote; other programs' output as lines."""
    out = {}
    for log in sorted(directory.glob("bench_*.log")):
        report = log.with_suffix(".json")
        if not report.exists():
            out[log.stem] = log.read_text(errors="replace").splitlines()
            continue
        rows = json.loads(report.read_text())["benchmarks"]
        out[log.stem] = {
            row["run_name"]: f"{row['real_time']:.4g} {row['time_unit']}"
            for row in rows
            if row.get("aggregate_name") == "median"
        }
    return out


def main() -> None:
    directory = pathlib.Path(sys.argv[1])
    report = {
        "machine": machine(),
        "failed_steps": sys.argv[2:],
        "tests": tests(directory),
        "medians": medians(directory),
    }
    text = json.dumps(report, indent=2)
    (directory / "gpu.json").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
