"""Asks upstream's script what it sets for one kernel; runs where scripts run, prints JSON.

Arguments: the script, the model, the kernel. Imports nothing of this package.
"""

from __future__ import annotations

import json
import runpy
import sys
from typing import Any


def main(script: str, model: str, kernel: str) -> None:
    said: dict[str, Any] = runpy.run_path(script)
    own = model.lower()
    scalars = {
        **said["CASE_INT_SCALAR_DEFAULTS"].get(kernel, {}),
        **said["SAMPLE_CASE_INT_SCALAR_DEFAULTS"].get(own, {}).get(kernel, {}),
    }
    answer = {
        "scalars": scalars,
        "scalar": said["_integer_scalar_default_value"]("", "", "int32_t", ""),
        "elements": said["_pointer_count_minimums_for_case"](model, kernel),
        "outputs": said["SAMPLE_CASE_OUTPUT_PARAMS"].get(own, {}).get(kernel),
        "compared": said["CASE_COMPARE_PREFIX_COUNTS"].get(kernel, {}),
        "closeness": {t: said["_default_eps_for_cpp_type"](t) for t in ("half", "float")},
        "ulps": said["_default_bf16_max_ulp_for_cpp_type"]("bfloat16_t"),
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
