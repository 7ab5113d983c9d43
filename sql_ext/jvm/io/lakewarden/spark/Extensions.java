package io.lakewarden.spark;

import java.util.function.BiFunction;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkContext$;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractFunction2;
import scala.runtime.BoxedUnit;

/** What a session gets: {@code spark.sql.extensions=io.lakewarden.spark.Extensions}. */
public final class Extensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    registerCatalog();
    injectParser(extensions, Parsers::around);
    TableRules.inject(extensions);
    return BoxedUnit.UNIT;
  }

  /** Sessions copy their settings from the context's when they are made. */
  private static void registerCatalog() {
    SparkContext context = SparkContext$.MODULE$.getActive().get();
    context.conf().setIfMissing(Procedures.SETTING, Procedures.class.getName());
  }

  private static void injectParser(
      SparkSessionExtensions extensions,
      BiFunction<SparkSession, ParserInterface, ParserInterface> builder) {
    extensions.injectParser(
        new AbstractFunction2<SparkSession, ParserInterface, ParserInterface>() {
          @Override
          public ParserInterface apply(SparkSession session, ParserInterface parser) {
            return builder.apply(session, parser);
          }
        });
  }
}
