#!/usr/bin/env python3
# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Checks the rules of STYLE.md that a machine can keep. Standard library only; runs as a test.

Every finding names the file, the line, the rule and what to write instead. What is excused stands
in tools/tidy_allow.txt as `rule path count`: a count may only fall. When a file needs less than its
count, that is a finding too, so the list shrinks with the code.
"""

import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import tidy_rules as rules

LISTING = "CMakeLists.txt"


@dataclass(frozen=True)
class Finding:
    rule: str
    path: str
    line: int
    words: str

    def __str__(self):
        return f"{self.path}:{self.line}: [{self.rule}] {self.words}"


def is_test(path):
    """Tests and the fakes they use may do a little more than what ships."""
    return path.endswith("_test.cc") or "/testing/" in path or path.startswith("tests/")


def strip_code(text):
    """The lines of C++ with comments and the insides of literals blanked, columns kept."""

    def blank(match):
        piece = match.group(0)
        if piece.startswith("'") and len(piece) > 1:
            return "'" + " " * (len(piece) - 2) + "'"
        if piece.startswith('"'):
            return '"' + " " * (len(piece) - 2) + '"'
        return re.sub(r"[^\n]", " ", piece)

    pattern = (
        r'R"(?P<tag>[^(\s]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])+\''
        r"|//[^\n]*|/\*.*?\*/"
    )
    return re.sub(pattern, blank, text, flags=re.DOTALL).split("\n")


def check_banned(path, text):
    """Words that have a better one here."""
    for number, line in enumerate(strip_code(text), 1):
        for ban in rules.BANS:
            if any(path.startswith(place) for place in ban.places):
                continue
            if ban.spare_tests and is_test(path):
                continue
            if re.search(ban.pattern, line):
                yield Finding(ban.rule, path, number, ban.instead)


def check_edges(path, text):
    """Includes go one way only, and foreign libraries stay where they belong."""
    parts = path.split("/")
    folder = parts[1] if parts[0] == "src" else None
    if folder is not None and folder not in rules.EDGES:
        yield Finding("edges", path, 1, f"folder src/{folder} has no line in EDGES (tidy_rules.py)")
        return
    for number, line in enumerate(text.split("\n"), 1):
        match = re.match(r'#include ([<"])([^>"]+)[>"]', line)
        if not match:
            continue
        target = match.group(2)
        yield from check_foreign(path, number, target)
        used = target.split("/")[0]
        if folder is None or used not in rules.EDGES or used == folder:
            continue
        if used not in rules.allowed_folders(folder) and not (
            is_test(path) and (folder, used) in rules.TEST_EDGES
        ):
            words = f"src/{folder} may not include {used}/: it may use {rules.named(folder)}"
            yield Finding("edges", path, number, words)


def check_foreign(path, number, target):
    for prefix, places in rules.FOREIGN.items():
        if re.match(prefix, target) and not any(path.startswith(p) for p in places):
            yield Finding("foreign", path, number, f"<{target}> belongs to {' and '.join(places)}")


def check_sizes(path, text):
    lines = text.count("\n")
    limit = 800 if is_test(path) else 500
    if lines > limit:
        yield Finding("file-size", path, limit, f"{lines} lines: split it, {limit} is the limit")
    if path.endswith((".cc", ".h")) and not is_test(path):
        yield from check_functions(path, text)


NOT_A_FUNCTION = re.compile(
    r"^(namespace|class|struct|enum|union|extern|if|for|while|switch|do|else|case|return|using"
    r"|static_assert|public|private|protected|typedef)\b"
)


def check_functions(path, text):
    """Approximate, and good enough on formatted code: a body ends at the `}` of its own column."""
    lines = strip_code(text)
    head = None
    for number, line in enumerate(lines):
        match = re.match(r"^((?:  )?(?:  )?)([^\s}].*)$", line)
        if match and not NOT_A_FUNCTION.match(match.group(2)) and head is None:
            head = (number, match.group(1), "(" in line)
        elif head and "(" in line:
            head = (head[0], head[1], True)
        if head is None:
            continue
        stripped = line.rstrip()
        if stripped.endswith("{") and head[2]:
            length = body_end(lines, number, head[1]) - head[0] + 1
            if length > rules.FUNCTION_LINES_MAX:
                words = f"{length} lines: {rules.FUNCTION_LINES_MAX} is the limit"
                yield Finding("function-size", path, head[0] + 1, words)
        if stripped.endswith((";", "{", "}", ":")):
            head = None


def body_end(lines, start, indent):
    """The line that closes what opens at `start`; `start` itself for a lambda."""
    for number in range(start + 1, len(lines)):
        if lines[number].startswith(indent + "}"):
            return number if lines[number].rstrip() == indent + "}" else start
    return start


def check_notice(path, text):
    lines = text.split("\n")
    if lines and lines[0].startswith("#!"):
        lines = lines[1:]
    marks = [re.sub(r"^(//|#|<!--)\s*", "", line) for line in lines[:2]]
    if len(marks) < 2 or not (
        marks[0].startswith("SPDX-FileCopyrightText:")
        and marks[1].startswith("SPDX-License-Identifier: Apache-2.0")
    ):
        yield Finding("notice", path, 1, "starts with the two SPDX lines that every file has")
    if path.endswith(".h") and "#pragma once" not in text:
        yield Finding("notice", path, 1, "a header says #pragma once")


COMMENTED_CC = re.compile(
    r"^\s*//\s*(?:(?:if|for|while|switch) \(.*[{;)]$|return\b.*;$|#include\b|(?:const |auto |int "
    r"|void |std::)\w.*[;{]$|\w[\w.:>-]*\(.*\);$|\w+ = .*;$|[{}]\s*$)"
)
COMMENTED_CMAKE = re.compile(
    r"^\s*#\s*(?:add_\w+|target_\w+|set|list|include|find_package)\s*\(.*\)\s*$"
)


def check_comments(path, text):
    pattern = COMMENTED_CMAKE if path.endswith((".txt", ".cmake")) else COMMENTED_CC
    for number, line in enumerate(text.split("\n"), 1):
        if path.endswith((".cc", ".h", ".txt", ".cmake")) and pattern.match(line):
            yield Finding("dead-code", path, number, "commented-out code: delete it, git keeps it")
        if re.search(r"\bFIX" + r"ME\b", line):
            yield Finding("unfinished", path, number, "cannot merge: mend it now")
        if re.search(r"\bTO" + r"DO\b(?!\(#\d+\))", line):
            yield Finding("unfinished", path, number, "name the issue: TO" + "DO(#12)")


def check_listed(paths):
    """Every source and header is named in a CMakeLists.txt, or it is built by no one."""
    listings = {str(Path(p).parent): Path(p).read_text() for p in paths if p.endswith(LISTING)}
    for path in paths:
        if path.endswith((".cc", ".h")) and not path.startswith(tuple(rules.UNLISTED)):
            yield from check_one_listed(path, listings)


def check_one_listed(path, listings):
    above = [str(f) for f in Path(path).parents if str(f) in listings]
    if above:
        name = str(Path(path).relative_to(above[0]))
        if named_in(listings[above[0]], name) or named_by_loop(listings[above[0]], name):
            return
    # Built by another folder, as ../supervisor/testing/fake_front.cc.
    shared = "../" + "/".join(Path(path).parts[1:])
    if any(named_in(text, shared) for text in listings.values()):
        return
    where = f"not named in {above[0]}/{LISTING}" if above else f"no {LISTING} above it"
    yield Finding("listed", path, 1, f"{where}: nobody builds it")


def named_in(text, name):
    return re.search(rf"(?<![\w/.-]){re.escape(name)}(?![\w.-])", text) is not None


def named_by_loop(text, name):
    """Families: `foreach(name json proto)` … `${name}_fuzz.cc`, or `tensord_fuzz(NAME json …)`."""
    stem, _, family = Path(name).stem.rpartition("_")
    if family and re.search(rf"\b\w+_{family}\(NAME {re.escape(stem)}\b", text):
        return True
    for suffix in re.findall(r"\$\{\w+\}([\w./-]+)", text):
        stem = name.removesuffix(suffix)
        if stem != name and re.search(rf"(?<![\w-]){re.escape(Path(stem).name)}(?![\w-])", text):
            return True
    return False


def check_shared_reader(texts):
    """One function is the only reader of bytes that a worker can still change."""
    definition = re.compile(r"^[\w:<>*& ]+\bCopyFromShared\([^;]*?\)[^;]*?\{", re.MULTILINE)
    found = [p for p, t in texts.items() if p.startswith("src/") and definition.search(t)]
    wrong = [p for p in found if not p.startswith("src/channel/")]
    if len(found) > 1 or wrong:
        for path in wrong or found:
            words = "CopyFromShared has one definition, in src/channel/"
            yield Finding("shared-reader", path, 1, words)


def read_allowances(path):
    allowed = {}
    if path.exists():
        for line in path.read_text().splitlines():
            if line.strip() and not line.startswith("#"):
                rule, name, count = line.split()[:3]
                allowed[(rule, name)] = int(count)
    return allowed


def excuse(findings, allowed):
    """Takes out what the allow-list excuses; says where it excuses too much."""
    counts = Counter((f.rule, f.path) for f in findings)
    kept = [f for f in findings if counts[f.rule, f.path] > allowed.get((f.rule, f.path), 0)]
    for (rule, path), count in sorted(allowed.items()):
        if counts[rule, path] < count:
            words = f"{path} now needs {counts[rule, path]} of {count}: lower its line"
            kept.append(Finding(rule, "tools/tidy_allow.txt", 1, words))
    return kept


def check_file(path, text):
    if path.endswith((".cc", ".h")) and path.startswith("src/"):
        yield from check_banned(path, text)
        yield from check_edges(path, text)
    if path.endswith((".cc", ".h", ".py", ".sh", ".cmake", ".proto", ".go", "CMakeLists.txt")):
        yield from check_notice(path, text)
        yield from check_sizes(path, text)
        yield from check_comments(path, text)


def project_files(root):
    """What git tracks or would track; everything below a folder that is no repository."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        listing = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
        names = listing.stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        names = [str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()]
    skipped = ("build/", ".venv/", ".git/")
    return sorted(n for n in set(names) if not n.startswith(skipped) and (root / n).is_file())


def check_tree(root):
    paths = project_files(root)
    texts = {}
    findings = []
    for path in paths:
        if not path.endswith(rules.TEXT_SUFFIXES):
            continue
        texts[path] = (root / path).read_text(encoding="utf-8", errors="replace")
        findings += check_file(path, texts[path])
    findings += check_listed([p for p in paths if p.startswith(("src/", "tests/", "bench/"))])
    findings += check_shared_reader(texts)
    return excuse(findings, read_allowances(root / "tools/tidy_allow.txt"))


def main():
    root = Path(__file__).resolve().parent.parent
    findings = check_tree(root)
    for finding in findings:
        print(finding)
    print(f"tidy: {len(findings)} findings" if findings else "tidy: clean")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
