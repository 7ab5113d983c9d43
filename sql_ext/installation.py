"""Installation: our classes in Spark's JVM, in a session that is there or in those to come."""

from collections.abc import Mapping

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from lakewarden.sessions import jar_path
from lakewarden.sql_ext.python_bridge import open_bridge
from lakewarden.sql_ext.session.permitted import fix_permissions
from lakewarden.sql_ext.table_functions import register

EXTENSIONS = "io.lakewarden.spark.Extensions"


def install(spark: SparkSession, settings: Mapping[str, str]) -> None:
    """Add our statements to a session, and to those that are made of it."""
    context = spark.sparkContext
    fix_permissions(context, settings)
    gateway = context._gateway
    assert gateway is not None
    load_classes(gateway)
    open_bridge(gateway)
    gateway.jvm.io.lakewarden.spark.Installation.into(spark._jsparkSession)
    register(spark)


def load_classes(gateway: JavaGateway) -> None:
    """Let the JVM find our classes, if it was not started with them."""
    classes = gateway.jvm.java.lang.Thread.currentThread().getContextClassLoader()
    try:
        classes.loadClass(EXTENSIONS)
    except Py4JJavaError:
        classes.addURL(gateway.jvm.java.io.File(jar_path()).toURI().toURL())
