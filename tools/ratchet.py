#!/usr/bin/env python3
"""Counts what the house wants less of, and fails when a count grows. usage: tools/ratchet.py [--list NAME] [--update]

tools/ratchet.txt holds the counts that are allowed. A count above its number fails; one below asks for --update, which writes the lower
number, so that what was gained is kept. --list NAME shows where. Heuristics over the text of src/: no compiler is needed, and a false
positive costs one in the committed number.
"""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COUNTS = os.path.join(ROOT, "tools", "ratchet.txt")
LINES_MAX = 70
FIXTURES = ("test_server", "fake_etcd", "test_json", "example_server", "cacher_fixture", "cacher_harness", "session_fuzz")
GENERIC = ("src/endpoints/", "src/server/", "src/storage/", "src/cacher/", "src/patch/", "src/codec/", "src/request/", "src/meta/",
           "src/validation/", "src/http/")
# Uses, not the declarations and definitions of FindStrategy and BuiltIn themselves.
LOOKUPS = re.compile(r"\b(schema::(FindKind|FindType|FindResource|FindPackage|Packages)|(registry::)?(?<!Strategy\* )FindStrategy|(?<!& )Catalog::BuiltIn)\(")
BELOW_LOOKUPS = ("src/schema/", "src/codec/")
RESPONSE = re.compile(r"\bhttp::Response( \w+(;| =|\{)|\(\)|\{)|\b(endpoints::)?(PlainError|StatusResponse|BytesResponse|PageResponse)\("
                      r"|\bendpoints::(JSONDocument|Text)\(")
MAKES_RESPONSES = ("src/endpoints/", "src/http/", "src/proxy/")
COROUTINE_LAMBDA = re.compile(r"\[([^\[\]]*[\w&=*][^\[\]]*)\]\s*\([^()]*(?:\([^()]*\)[^()]*)*\)\s*(?:mutable\s*)?->\s*(?:\w+::)*(?:Awaitable|Task|awaitable)<")
# A coroutine's definition, with its parameters: a view or a reference to a temporary may be gone after the first co_await.
COROUTINE = re.compile(r"^(?P<indent>(?:  )?)(?:static )?(?:\w+::)*(?:Awaitable|Task|awaitable)<[^;{}=]*>\s+[\w:~]+\((?P<parameters>[^;{}]*)\)\s*(?:const\s*)?(?:override\s*)?\{\n", re.M)
KEPT_VIEW = re.compile(r"std::string_view|std::span<|const std::(?:string|vector|map|optional|function)\b[^,&]*&")
DEFINITION = re.compile(r"^(?P<indent>(?:  )?)(?!namespace|class|struct|enum|union|extern|using|static_assert|if|for|while|switch|else|do|return)[A-Za-z_].*\{$")
DECLARED = re.compile(r"^\s*(?:static |virtual |constexpr |inline |explicit |\[\[nodiscard\]\] )*[\w:<>,&*\s]+?[\s&*](?P<name>[A-Z]\w+)\(")


def sources():
    for folder, _, names in os.walk(os.path.join(ROOT, "src")):
        for name in sorted(names):
            if not name.endswith((".cc", ".h")) or name.endswith(("_test.cc", "_test.h", "_fuzz.cc", "_bench.cc")):
                continue
            path = os.path.relpath(os.path.join(folder, name), ROOT)
            if path.startswith("src/testing/") or "/testing/" in path or "/contract_suite/" in path or name.startswith(FIXTURES):
                continue
            with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as file:
                yield path, file.read()


def templates():
    """Inputs of configure_file for sources: the templates, and the lists of CMakeLists.txt that they take in."""
    for folder, _, names in os.walk(os.path.join(ROOT, "src")):
        for name in sorted(names):
            if name == "CMakeLists.txt" or name.endswith(".cc.in"):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    yield name, file.read()


def kind_names():
    """Kinds and plural names of resources, from the tables."""
    names = set()
    for folder, _, files in os.walk(os.path.join(ROOT, "api")):
        for name in files:
            if not name.endswith(".kapi"):
                continue
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                for line in file:
                    words = line.split()
                    if len(words) > 2 and words[0] == "resource":
                        names.update(words[1:3])
    return {name for name in names if name.isalpha()} - {"string", "namespaced", "cluster"}


def at(path, text, position):
    return "%s:%d" % (path, text.count("\n", 0, position) + 1)


def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


def long_functions(path, text):
    start = None
    for number, line in enumerate(text.split("\n"), 1):
        if start is None:
            match = DEFINITION.match(line)
            if match and "(" in line or match and line.rstrip().endswith(") {"):
                start, indent = number, match.group("indent")
        elif line.startswith(indent + "}") and not line.startswith(indent + "} else"):
            if number - start + 1 > LINES_MAX:
                yield "%s:%d (%d lines)" % (path, start, number - start + 1)
            start = None


def kept_views(path, text):
    """Coroutines that take views, or references to what a caller may make on the spot."""
    for match in COROUTINE.finditer(text):
        end = text.find("\n" + match.group("indent") + "}", match.end() - 1)
        if "co_await" in text[match.end():end] and KEPT_VIEW.search(match.group("parameters")):
            yield at(path, text, match.start())


def unused_functions(files):
    """Functions of headers whose names no other line of the product has. Sources that CMake makes count as well."""
    words = {}
    for _, text in files + [(path, text) for path, text in templates()]:
        for word in re.findall(r"\b[A-Z]\w+\b", without_comments(text)):
            words[word] = words.get(word, 0) + 1
    for path, text in files:
        if not path.endswith(".h"):
            continue
        lines = text.split("\n")
        for number, line in enumerate(lines, 1):
            match = DECLARED.match(line.split("//")[0])
            if not match or line.split()[0] == "return" or "operator" in line:
                continue
            declaration = re.match(r"[^;{]*", "\n".join(lines[number - 1:])).group(0)  # may go over several lines
            if "override" in declaration:
                continue
            name = match.group("name")
            inline = "{" in line
            if words.get(name, 0) <= (1 if inline else 2):
                yield "%s:%d %s" % (path, number, name)


def count():
    files = [(path, text) for path, text in sources()]
    kinds = kind_names()
    literal = re.compile(r'(?<!kNamespacesSegment = )"(\w+)"')  # the word of URL paths is not a kind
    found = {"kind names in generic code": [], "global look-ups above codec": [], "HTTP responses made outside endpoints": [],
             "capturing coroutine lambdas": [], "functions above 70 lines": [], "unused functions": [], "coroutines with views as parameters": []}
    for path, text in files:
        code = without_comments(text)
        if path.startswith(GENERIC) or re.fullmatch(r"src/registry/\w+\.(cc|h)", path):
            found["kind names in generic code"] += [at(path, code, m.start()) + " " + m.group(1) for m in literal.finditer(code) if m.group(1) in kinds]
        if not path.startswith(BELOW_LOOKUPS):
            found["global look-ups above codec"] += [at(path, code, m.start()) for m in LOOKUPS.finditer(code)]
        if not path.startswith(MAKES_RESPONSES):
            found["HTTP responses made outside endpoints"] += [at(path, code, m.start()) for m in RESPONSE.finditer(code)]
        found["capturing coroutine lambdas"] += [at(path, code, m.start()) for m in COROUTINE_LAMBDA.finditer(code)]
        found["functions above 70 lines"] += long_functions(path, code)
        found["coroutines with views as parameters"] += kept_views(path, code)
    found["unused functions"] = list(unused_functions(files))
    return found


def main():
    found = count()
    if "--list" in sys.argv:
        print("\n".join(found[sys.argv[sys.argv.index("--list") + 1]]))
        return 0
    allowed = {}
    if os.path.exists(COUNTS):
        with open(COUNTS) as file:
            for line in file:
                number, name = line.strip().split(" ", 1)
                allowed[name] = int(number)
    failed = False
    for name, places in found.items():
        limit = allowed.get(name, 0)
        verdict = "ok"
        if len(places) > limit:
            verdict, failed = "GREW", True
        elif len(places) < limit:
            verdict = "fell: run tools/ratchet.py --update"
        print("%4d of %4d  %-40s %s" % (len(places), limit, name, verdict))
        if verdict == "GREW":
            print("            tools/ratchet.py --list %r" % name)
    if "--update" in sys.argv:
        with open(COUNTS, "w") as file:
            file.writelines("%d %s\n" % (min(len(places), allowed.get(name, len(places))), name) for name, places in found.items())
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
