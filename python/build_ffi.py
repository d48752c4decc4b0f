"""Makes the extension's C source from the public headers, so that Python's view of the library cannot drift from C's.

The headers are plain enough to be read without a preprocessor: comments, includes, guards and inline function bodies are
taken out, integer macros become constants, and what is left are the declarations that cffi parses.
"""
from __future__ import annotations

import argparse
import pathlib
import re

# Order of dependence; a header not listed here is read after these, by name.
FIRST = ["status.h", "topology.h", "load.h", "placement.h", "metrics.h", "plan.h"]
SKIPPED = {"eplb.h", "export.h", "route_select.h"}

# Functions that C calls and Python implements.
CALLBACKS = """
extern "Python" bool eplb_python_progress(void *context, int64_t done, int64_t total);
extern "Python" bool eplb_python_problem(void *context, const eplb_problem *problem);
"""


def header_paths(include: pathlib.Path) -> list[pathlib.Path]:
    """Public headers in an order in which each follows those it needs."""
    folder = include / "eplb"
    names = sorted(path.name for path in folder.glob("*.h"))
    order = FIRST + [name for name in names if name not in FIRST]
    return [folder / name for name in order if name not in SKIPPED]


def strip_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)


def constants(text: str) -> list[str]:
    """Integer macros as cffi constants; include guards and function-like macros have no value and fall out."""
    found = re.findall(r"^#define\s+(EPLB_[A-Z0-9_]+)\s+(\(?-?\d+\)?)\s*$", text, flags=re.MULTILINE)
    return [f"#define {name} ..." for name, _ in found]


def declarations_of(header: pathlib.Path) -> str:
    """What cffi is to parse of one header."""
    text = strip_comments(header.read_text())
    defines = constants(text)
    text = re.sub(r"^\s*#(?:[^\n]*\\\n)*[^\n]*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\bEPLB_(API|BEGIN_DECLS|END_DECLS)\b", "", text)
    text = re.sub(r"\n\s*\n+", "\n", text)
    return "\n".join(defines) + "\n" + text


def declarations(include: pathlib.Path) -> str:
    """Everything cffi is to parse, callbacks included."""
    return "\n".join(declarations_of(path) for path in header_paths(include)) + CALLBACKS


def write_source(include: pathlib.Path, output: pathlib.Path) -> None:
    import cffi

    builder = cffi.FFI()
    builder.cdef(declarations(include))
    includes = "\n".join(f"#include <eplb/{path.name}>" for path in header_paths(include))
    builder.set_source("eplb._eplb", includes)
    builder.emit_c_code(str(output))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--include", type=pathlib.Path, required=True, help="the folder that holds eplb/*.h")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="the C source to write")
    arguments = parser.parse_args()
    write_source(arguments.include, arguments.output)


if __name__ == "__main__":
    main()
