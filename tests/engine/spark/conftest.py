"""What the tests of Spark need besides its session."""

from importlib.util import find_spec

# The client of Spark Connect is no part of PySpark proper.
collect_ignore = [] if find_spec("grpc") else ["test_connect.py"]
