package io.lakewarden.spark;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/** Holds plans and statements while Python works with them: only values cross the bridge. */
public final class PlanRegistry {
  private static final Map<Long, Object> LYING = new ConcurrentHashMap<>();
  private static final AtomicLong NEXT = new AtomicLong();

  private PlanRegistry() {}

  static long number() {
    return NEXT.incrementAndGet();
  }

  public static void put(long number, Object thing) {
    LYING.put(number, thing);
  }

  public static Object get(long number) {
    return LYING.get(number);
  }

  static Object take(long number) {
    return LYING.remove(number);
  }
}
