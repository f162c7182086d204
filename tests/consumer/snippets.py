"""Compiles and runs the C++ of README.md and docs/*.md, and follows their links.

usage: snippets.py REPOSITORY WORK_DIRECTORY [FILE ...]

What a ```cpp block is, is told from its text: a program (has `int main(`), a kernel's source (has
`__global__` and no `jit`), declarations, or statements. Statements are put into a function that has
`config`, `root`, `jit`, `source`, `kernel`, `input`, `output` and `count`. A comment in the line
before the block says otherwise, in these words:

    <!-- cpp: program | kernel | declarations | statements, host | cuda | ascend, compile | skip -->

`compile`: not run. `skip`: not even that; say why in the comment's rest.

Statements and programs of Host are run; those of CUDA where the stand-in driver was built, or where
DEEP_JIT_STAND_IN_CUDA names its directory; others are compiled.
"""

import concurrent.futures
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys

KINDS = ("program", "kernel", "declarations", "statements")
BACKENDS = ("host", "cuda", "ascend")
# Headers of other projects: what includes them is compiled elsewhere, if at all.
FOREIGN = re.compile(r"#include [<\"](torch|cutlass|pybind11|nanobind)/")
KERNEL = """
extern "C" __global__ void scale(float* output, const float* input, int count) {
    const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (index < count)
        output[index] = input[index] * 2.0f;
}
"""
VALUES = """
    const std::filesystem::path root = std::filesystem::current_path();
    const deep_jit::Config config(root, "MYLIB");
    auto jit = deep_jit::create_lazy_jit<Backend>(config);
    const std::string source = kScaleSource;
    const auto kernel = jit->compile("scale", source);
    const int count = 1000;
    std::vector<float> input_data(count), output_data(count);
    float* const output = output_data.data();
    const float* const input = input_data.data();
"""


@dataclasses.dataclass
class Block:
    file: str
    line: int
    text: str
    kind: str
    backend: str
    words: set[str]

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line}"


@dataclasses.dataclass
class Unit:
    """One program made of blocks."""

    name: str
    text: str
    backend: str
    run: bool


def kind_of(text: str) -> str:
    if "int main(" in text:
        return "program"
    if "__global__" in text and "jit" not in text:
        return "kernel"
    if re.search(
        r"^(namespace|inline|template|struct|static|void|#define) ", text, re.MULTILINE
    ):
        return "declarations"
    return "statements"


def backend_of(text: str, file: str) -> str:
    for backend in ("cuda", "ascend"):
        if re.search(rf"deep_jit::{backend}\b", text, re.IGNORECASE) or file.endswith(
            f"/{backend}.md"
        ):
            return backend
    return "host"


def blocks_of(path: pathlib.Path, file: str) -> list[Block]:
    out, words, body = [], set(), None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if body is None and line.strip() == "```cpp":
            body, start = [], number + 1
        elif body is not None and line.strip() == "```":
            text = "\n".join(body) + "\n"
            kind = next((k for k in KINDS if k in words), kind_of(text))
            backend = next((b for b in BACKENDS if b in words), backend_of(text, file))
            out.append(Block(file, start, text, kind, backend, words))
            body, words = None, set()
        elif body is not None:
            body.append(line)
        elif comment := re.match(r"<!-- cpp: (.*)-->", line):
            words = set(re.findall(r"\w+", comment.group(1)))
        elif line.strip():
            words = set()
    return out


def located(block: Block) -> tuple[str, str]:
    """The block's includes, and the rest, with its place in the document for messages."""
    lines = block.text.splitlines()
    includes = [line for line in lines if line.startswith("#include")]
    rest = ["" if line.startswith("#include") else line for line in lines]
    return "\n".join(includes), "\n".join(
        [f'#line {block.line} "{block.file}"', *rest, ""]
    )


def unit_of(blocks: list[Block], backend: str, can_run: bool) -> Unit:
    """Blocks of one document, one function or namespace each."""
    name = f"{blocks[0].file} ({backend})"
    type_name = {"host": "Host", "cuda": "CUDA", "ascend": "Ascend"}[backend]
    includes, parts, calls = [], [], []
    for i, block in enumerate(blocks):
        mine, text = located(block)
        includes.append(mine)
        if block.kind == "declarations":
            parts.append(f"namespace block_{i} {{\n{text}\n}}\n")
            continue
        run = can_run and "compile" not in block.words
        if block.kind == "kernel":
            text = (
                f'jit->compile_without_load("kernel", R"kernel({block.text})kernel");'
            )
        parts.append(
            f"[[maybe_unused]] static void block_{i}() {{{VALUES}{{\n{text}\n;}}\n}}\n"
        )
        if run:
            calls.append(f'run("{block.name}", block_{i});\n')
    text = "\n".join(
        [
            f"#include <deep_jit/backend/{backend}/backend.hpp>",
            "#include <cstdio>\n#include <vector>",
            *includes,
            f"using Backend = deep_jit::{type_name};",
            f'constexpr const char* kScaleSource = R"({KERNEL})";',
            *parts,
            "static int failed = 0;",
            "[[maybe_unused]] static void run(const char* name, void (*block)()) {",
            "    try { block(); } catch (const std::exception& error) {",
            '        std::printf("%s: %s\\n", name, error.what());',
            "        ++failed;\n    }\n}",
            f"int main() {{\n{''.join(calls)}return failed;\n}}",
        ]
    )
    return Unit(name, text, backend, bool(calls))


class Checker:
    def __init__(self, root: pathlib.Path, work: pathlib.Path):
        self.root, self.work = root, work
        self.environment = dict(os.environ, DJ_JIT_CACHE_DIR=str(work / "cache"))
        cuda = subprocess.run(
            [root / "scripts" / "cuda_home.sh"],
            capture_output=True,
            text=True,
            check=False,
        ).stdout.strip()
        stand_in = pathlib.Path(
            os.environ.get("DEEP_JIT_STAND_IN_CUDA", root / "build/dev/stand_in/cuda")
        ).resolve()
        self.flags = {"host": [], "ascend": []}
        self.can_run = {"host": True, "cuda": False, "ascend": False}
        if cuda:
            self.flags["cuda"] = ["-isystem", f"{cuda}/include"]
            self.environment["CUDA_HOME"] = cuda
            self.can_run["cuda"] = (stand_in / "libcuda.so.1").exists()
            self.environment["LD_LIBRARY_PATH"] = str(stand_in)
        for backend in BACKENDS:
            if not (
                root / "include/deep_jit/backend" / backend / "backend.hpp"
            ).exists():
                self.flags.pop(backend, None)

    def units(self, file: str) -> tuple[list[Unit], list[str]]:
        units, skipped, together = [], [], {}
        for block in blocks_of(self.root / file, file):
            if "skip" in block.words or FOREIGN.search(block.text):
                skipped.append(block.name)
            elif block.backend not in self.flags:
                skipped.append(f"{block.name} (no headers for {block.backend})")
            elif block.kind == "program":
                includes, text = located(block)
                run = self.can_run[block.backend] and "compile" not in block.words
                units.append(
                    Unit(block.name, f"{includes}\n{text}", block.backend, run)
                )
            else:
                together.setdefault(block.backend, []).append(block)
        for backend, blocks in together.items():
            units.append(unit_of(blocks, backend, self.can_run[backend]))
        return units, skipped

    def check(self, unit: Unit) -> str:
        """Empty, or what went wrong."""
        place = self.work / re.sub(r"\W+", "_", unit.name)
        place.mkdir(parents=True)
        (place / "snippet.cpp").write_text(unit.text)
        compiler = os.environ.get("CXX") or shutil.which("g++") or "c++"
        command = [compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror", "-Wno-unused"]
        command += [f"-I{self.root}/include", *self.flags[unit.backend], "snippet.cpp"]
        if shutil.which("ccache"):
            command.insert(0, "ccache")
        # ccache wants an object file.
        steps = [[*command, "-c", "-o", "snippet.o"]]
        if unit.run:
            steps += [
                [compiler, "snippet.o", "-o", "snippet", "-pthread", "-ldl"],
                ["./snippet"],
            ]
        for step in steps:
            result = subprocess.run(
                step,
                cwd=place,
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=300,
                check=False,
            )
            if result.returncode != 0:
                return f"{step[0]}: status {result.returncode}\n{result.stdout}"
        return ""


def broken_links(root: pathlib.Path, file: str) -> list[str]:
    """Links to files that are not there, and to headings that no document has."""

    def anchors(path: pathlib.Path) -> set[str]:
        titles = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
        return {re.sub(r"[^\w\- ]", "", t.lower()).replace(" ", "-") for t in titles}

    out = []
    text = re.sub(r"```.*?```", "", (root / file).read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (root / file).parent / name if name else root / file
        if not path.exists() or (anchor and anchor not in anchors(path)):
            out.append(f"{file}: the link to {target} leads nowhere")
    return out


def main() -> None:
    root, work = (
        pathlib.Path(sys.argv[1]).resolve(),
        pathlib.Path(sys.argv[2]).resolve(),
    )
    files = sys.argv[3:] or [
        "README.md",
        *sorted(f"docs/{path.name}" for path in (root / "docs").glob("*.md")),
    ]
    failures = [problem for file in files for problem in broken_links(root, file)]
    checker = Checker(root, work)
    units, skipped = [], []
    for file in files:
        new, left_out = checker.units(file)
        units += new
        skipped += left_out
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for unit, problem in zip(units, pool.map(checker.check, units)):
            if problem:
                failures.append(f"{unit.name}: {problem}")
            else:
                print(f"{unit.name}: {'ran' if unit.run else 'compiled'}")
    for name in skipped:
        print(f"{name}: skipped")
    for failure in failures:
        print(f"FAILED: {failure}")
    print(
        f"snippets: {len(units)} programs, {len(failures)} failures, {len(skipped)} skipped"
    )
    sys.exit(1 if failures or not units else 0)


if __name__ == "__main__":
    main()
