package io.lakewarden.spark;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/** Where plans and statements lie while Python works with them: the door lets only values pass. */
public final class Desk {
  private static final Map<Long, Object> LYING = new ConcurrentHashMap<>();
  private static final AtomicLong NEXT = new AtomicLong();

  private Desk() {}

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
