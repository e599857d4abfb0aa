"""Spark's long error texts become one line."""

import pytest

from analysis.jobs.spark import cause


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            ": org.apache.spark.SparkException: Job aborted: most recent failure: Lost task 1.3 "
            '(10.0.0.7 executor 1): java.io.IOException: Cannot run program "/opt/python"\n\tat a.b',
            'Lost task 1.3 (10.0.0.7 executor 1): java.io.IOException: Cannot run program "/opt/python"',
        ),
        (
            "most recent failure: PythonException: Traceback (most recent call last):\n  File a\n"
            "pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in\n",
            "pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in",
        ),
        (
            "most recent failure: PythonException: Traceback:\n  File\nanalysis.errors.CaptureError: torn\n"
            " SQLSTATE: 38000\n",
            "analysis.errors.CaptureError: torn",
        ),
        ("it just\nfailed", "it just"),
        (
            "while calling o1.x\n: y\nCaused by: org.apache.spark.SparkRuntimeException: [TOO_MANY] rows\n",
            "[TOO_MANY] rows",
        ),
        (
            "\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'x'.\n== SQL ==",
            "[PARSE_SYNTAX_ERROR] Syntax error at or near 'x'.",
        ),
    ],
)
def test_long_errors_of_spark_become_one_line(text, said):
    assert cause(Exception(text)) == said
