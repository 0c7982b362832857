# SPDX-License-Identifier: Apache-2.0
"""Compares the table of src/kube/schema-table.h with the structs of k8s.io/api, in every API version that is given.

    python3 tests/component/policy/compare_fields.py --driver build/gcc/tests/component/policy/driver --api .../api-1.36 --api .../api-1.37

Each field of each type must be in the table with the same type, or `nodens lint` would warn about a correct manifest; each field of
the table must be in one of the versions. Exits with 1 after all differences.
"""
import argparse
import json
import subprocess
import sys

Types = dict[str, dict[str, str]]


def ask(command: list[str], question: str = "") -> Types:
    return json.loads(subprocess.run(command, input=question, text=True, capture_output=True, check=True).stdout)


def differences(table: Types, versions: dict[str, Types]) -> list[str]:
    found = [f"{name}: {kind} lacks {field} (of type '{of}')"
             for name, types in versions.items() for kind, fields in types.items() for field, of in fields.items()
             if table.get(kind, {}).get(field) != of]
    found += [f"{name}: no type {kind}" for name, types in versions.items() for kind in types if kind not in table]
    found += [f"{kind}.{field} is in no version" for kind, fields in table.items() for field in fields
              if not any(field in types.get(kind, {}) for types in versions.values())]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--driver", required=True)
    parser.add_argument("--api", required=True, action="append")
    args = parser.parse_args()
    table = ask([args.driver], '{"op": "fields"}\n')
    versions = {program.rsplit("/", 1)[1]: ask([program]) for program in args.api}
    for difference in (found := differences(table, versions)):
        print(difference)
    count = sum(map(len, table.values()))
    print(f"{len(table)} types with {count} fields, compared with {', '.join(versions)}: {len(found)} differences")
    return 1 if found or count < 600 else 0


if __name__ == "__main__":
    sys.exit(main())
