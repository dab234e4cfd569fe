"""Reads the settings of upstream's script for one kernel; runs where scripts run, prints JSON.

Arguments: the script, the model, the kernel. Imports nothing of this package.
"""

from __future__ import annotations

import json
import runpy
import sys
from typing import Any


def main(script: str, model: str, kernel: str) -> None:
    names: dict[str, Any] = runpy.run_path(script)
    lower = model.lower()
    scalars = {
        **names["CASE_INT_SCALAR_DEFAULTS"].get(kernel, {}),
        **names["SAMPLE_CASE_INT_SCALAR_DEFAULTS"].get(lower, {}).get(kernel, {}),
    }
    answer = {
        "scalars": scalars,
        "scalar": names["_integer_scalar_default_value"]("", "", "int32_t", ""),
        "elements": names["_pointer_count_minimums_for_case"](model, kernel),
        "outputs": names["SAMPLE_CASE_OUTPUT_PARAMS"].get(lower, {}).get(kernel),
        "compared": names["CASE_COMPARE_PREFIX_COUNTS"].get(kernel, {}),
        "closeness": {t: names["_default_eps_for_cpp_type"](t) for t in ("half", "float")},
        "ulps": names["_default_bf16_max_ulp_for_cpp_type"]("bfloat16_t"),
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
