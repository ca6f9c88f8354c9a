"""Reads Prometheus' text format from standard input with the parser of Prometheus' client; prints `TYPE NAME {labels}
VALUE` for every sample, sorted. Fails if a name breaks a convention of https://prometheus.io/docs/practices/naming/."""

import re
import sys

from prometheus_client.parser import text_string_to_metric_families


def main():
    lines = []
    for family in text_string_to_metric_families(sys.stdin.buffer.read().decode()):
        # The parser removes the suffix _total from the family name of a counter.
        if not re.fullmatch(r"evrec(_[a-z]+)+", family.name) or family.name.endswith("_total"):
            sys.exit("a bad name: " + family.name)
        if not re.fullmatch(r"[A-Z].*\.", family.documentation) or family.type not in ("counter", "gauge"):
            sys.exit("a bad HELP or TYPE of " + family.name)
        for sample in family.samples:
            if sample.name != family.name + ("_total" if family.type == "counter" else ""):
                sys.exit("a bad name of a sample: " + sample.name)
            labels = ", ".join(f"{key}={value!r}" for key, value in sorted(sample.labels.items()))
            lines.append(f"{family.type} {sample.name} {{{labels}}} {sample.value:g}")
    sys.stdout.reconfigure(encoding="utf-8")
    print("\n".join(sorted(lines)))


main()
