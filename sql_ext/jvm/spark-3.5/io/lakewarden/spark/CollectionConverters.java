package io.lakewarden.spark;

import java.util.List;
import java.util.Map;
import java.util.Set;
import scala.collection.JavaConverters;
import scala.collection.Seq;
import scala.collection.mutable.Buffer;

/** Collections of Java as Scala's, and the other way: for Java, Scala 2.12 has it by other names. */
final class CollectionConverters {
  private CollectionConverters() {}

  static <T> Buffer<T> asScala(List<T> list) {
    return JavaConverters.asScalaBuffer(list);
  }

  static <T> List<T> asJava(Seq<T> sequence) {
    return JavaConverters.seqAsJavaList(sequence);
  }

  static <T> Set<T> asJava(scala.collection.Set<T> set) {
    return JavaConverters.setAsJavaSet(set);
  }

  static <K, V> Map<K, V> asJava(scala.collection.Map<K, V> map) {
    return JavaConverters.mapAsJavaMap(map);
  }
}
