"""Answers of a published scorer, printed as JSON lines; run by test_peers.py in that scorer's own environment.

``python peer.py omni_extract_bench|extract_bench FILE``: FILE has one case per line. Imports nothing of ours.
"""

import json
import sys
import warnings

COUNTS = (
    *("v_correct", "expected_cells", "predicted_cells", "g_correct", "grounded_expected_cells", "grounded_pred_claims"),
    *("p_correct", "page_expected_cells", "page_pred_claims", "expected_rows", "predicted_rows"),
    *("grounded_incomplete", "value_incomplete"),
)


def by_omni_extract_bench(case):
    """The key of a value, or all figures and verdicts of a document."""
    import omni_extract_bench

    if "value" in case:
        return omni_extract_bench.canon_key(case["value"])
    try:
        result = omni_extract_bench.score(*case["document"], verdicts=True)
    except (TypeError, ValueError) as error:
        return {"raises": type(error).__name__}
    return result | {"verdicts": [list(verdict) for verdict in result["verdicts"]]}


def by_extract_bench(case):
    """Precision, recall and F1 of the values, and every count; None where there is nothing to score."""
    from extract_bench.evaluation.metrics.extract import compute_unified_evidence_metrics
    from extract_bench.schemas.extract_output import FieldCitation
    from extract_bench.test_cases.schema import ExtractFieldTestRule

    rules = [ExtractFieldTestRule(field_path=path, **rule) for path, rule in case.get("field_rules", {}).items()]
    cited = [FieldCitation(**citation) for citation in case["citations"]] if "citations" in case else None
    found = compute_unified_evidence_metrics(case["expected"], case["output"], rules, cited, data_schema=case["schema"])
    if not found:
        return None
    values = {metric.metric_name.removeprefix("extract_unified_value_"): metric.value for metric in found}
    return [values[name] for name in ("precision", "recall", "f1")] + [found[0].metadata[name] for name in COUNTS]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    answer = {"omni_extract_bench": by_omni_extract_bench, "extract_bench": by_extract_bench}[sys.argv[1]]
    with open(sys.argv[2], encoding="utf-8") as lines:
        for line in lines:
            print(json.dumps(answer(json.loads(line))))
