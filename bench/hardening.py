#!/usr/bin/env python3
"""Share of the instructions of a row that the hardening of the build takes. usage: hardening.py KEELSON ROW.callgrind

ROW.callgrind is written by `counts.py --instructions`, KEELSON is the program that was counted, stripped (it is beside ROW.callgrind). One build is enough, so
that the noise of two runs (2 % on a busy machine) does not matter. Counted: loads of the stack protector's canary, 2.5 instructions each (it is stored at the
begin of a function, compared at its end); jumps to __glibcxx_assert_fail, 2 instructions each; calls of FORTIFY's functions. Registers that the checks take from
other code are not seen.
"""
import bisect
import collections
import re
import subprocess
import sys

INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\s+(\S+)\s*(.*)$")
BLOCK_BYTES_MAX = 48  # from a failed check to its call of __glibcxx_assert_fail


def read_counts(path):
    """All instructions, and those of the program by address: (count, function)."""
    names, objects, counts, functions = {}, {}, collections.Counter(), {}
    function, program, address, total, of_call = None, False, 0, 0, False

    def name(text, table):
        number, _, rest = text.partition(" ")
        return table.setdefault(number, rest) if rest else table.get(number, number)
    with open(path) as f:
        for line in f:
            line = line.rstrip("\n")
            kind, _, text = line.partition("=")
            if kind == "ob":
                program = name(text, objects).endswith("/keelson")
            elif kind == "fn":
                function = name(text, names)
            elif kind in ("cfn", "cob"):
                name(text, names if kind == "cfn" else objects)
            elif kind == "calls":
                of_call = True  # the next line has what the callee took
            elif match := re.match(r"^(0x[0-9a-f]+|\+\d+|-\d+|\*) \S+(?: (\d+))?$", line):
                at = match.group(1)
                address = int(at, 16) if at.startswith("0x") else address + (0 if at == "*" else int(at))
                if not of_call:
                    total += int(match.group(2) or 0)
                    if program:
                        counts[address] += int(match.group(2) or 0)
                        functions[address] = function
                of_call = False
    return total, counts, functions


def main():
    binary, path = sys.argv[1:3]
    total, counts, functions = read_counts(path)
    canaries, checks, fortified, jumps, failures = collections.Counter(), collections.Counter(), 0, [], []
    with subprocess.Popen(["objdump", "-d", "--no-show-raw-insn", binary], stdout=subprocess.PIPE, text=True) as listing:
        for line in listing.stdout:
            if not ("%fs:0x28" in line or "call" in line or "\tj" in line) or not (match := INSTRUCTION.match(line)):
                continue
            address, word, operand = int(match.group(1), 16), match.group(2), match.group(3)
            if "%fs:0x28" in operand:
                canaries[functions.get(address)] += counts.get(address, 0)
            elif "glibcxx_assert_fail" in operand:
                failures.append(address)
            elif "_chk" in operand and "stack_chk" not in operand:
                fortified += counts.get(address, 0)
            elif word != "jmp" and word.startswith("j") and address in counts and re.match(r"[0-9a-f]+ ", operand):
                jumps.append((address, int(operand.split()[0], 16)))
    failures.sort()
    for address, target in jumps:
        at = bisect.bisect_left(failures, target)
        if at < len(failures) and failures[at] - target < BLOCK_BYTES_MAX and target not in counts:
            checks[functions[address]] += counts[address]
    stack, assertions = 2.5 * sum(canaries.values()), 2 * sum(checks.values())
    print("instructions %d: stack protector %.2f %%, assertions %.2f %%, calls of FORTIFY's functions %d" %
          (total, 100 * stack / total, 100 * assertions / total, fortified))
    for title, found in (("stack protector", canaries), ("assertions", checks)):
        print("\nmost of the %s:" % title)
        for function, count in found.most_common(15):
            print("%12d  %s" % (count, function))


if __name__ == "__main__":
    main()
