package io.lakewarden.spark;

import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import net.razorvine.pickle.Pickler;
import net.razorvine.pickle.Unpickler;

/**
 * The only way to Python: the name of an operation and its pickled request go in, a pickled answer
 * comes out. Python never raises through it; an error is an answer, and is thrown here.
 */
public final class PythonBridge {
  private static volatile BiFunction<Object, Object, Object> handler;
  private static volatile Lines lines;
  // Per thread: whether Python answers a question of it, and how deep.
  private static final ThreadLocal<Integer> ANSWERING = ThreadLocal.withInitial(() -> 0);

  private PythonBridge() {}

  /**
   * Called by Python: from now on `handler` answers, reached by py4j's `client`, and `declarations`
   * are what there is.
   */
  public static synchronized void open(
      BiFunction<Object, Object, Object> handler, Object client, byte[] declarations)
      throws IOException {
    Declarations.replace((List<?>) new Unpickler().loads(declarations));
    if (lines == null || !lines.lead(client)) {
      lines = Lines.of(client);
    }
    PythonBridge.handler = handler;
  }

  public static boolean isOpen() {
    return handler != null;
  }

  /** Whether this thread does what Python asks of it for an answer, and not what a client asks. */
  static boolean isAnswering() {
    return ANSWERING.get() > 0;
  }

  /** Ask Python for an operation; the names and values of its request take turns. */
  static Object ask(String operation, Object... request) {
    if (handler == null) {
      throw LakewardenException.of(
          "NOT_CONNECTED",
          "08003",
          "Lakewarden's Python side does not answer.",
          "This Spark driver has its classes, but no Python process has connected to it.",
          "Call lakewarden.enable(spark) in the driver.");
    }
    return answer((byte[]) asked(operation, pickled(named(request))));
  }

  private static Object asked(String operation, byte[] request) {
    ANSWERING.set(ANSWERING.get() + 1);
    try {
      return handler.apply(operation, request);
    } catch (RuntimeException gone) {
      throw LakewardenException.of(
          "NOT_CONNECTED",
          "08006",
          "Lakewarden's Python side does not answer.",
          "The connection to the driver's Python process broke.",
          "Check whether the process is alive. CALL show_timeline shows what it has completed.");
    } finally {
      ANSWERING.set(ANSWERING.get() - 1);
      if (lines != null) {
        lines.remember();
      }
    }
  }

  private static Map<String, Object> named(Object... request) {
    Map<String, Object> named = new HashMap<>();
    for (int i = 0; i < request.length; i += 2) {
      named.put((String) request[i], request[i + 1]);
    }
    return named;
  }

  static byte[] pickled(Object value) {
    try {
      return new Pickler().dumps(value);
    } catch (IOException impossible) {
      throw new IllegalStateException(impossible);
    }
  }

  private static Object answer(byte[] reply) {
    Map<?, ?> answer;
    try {
      answer = (Map<?, ?>) new Unpickler().loads(reply);
    } catch (IOException impossible) {
      throw new IllegalStateException(impossible);
    }
    Map<?, ?> error = (Map<?, ?>) answer.get("error");
    if (error == null) {
      return answer.get("value");
    }
    if (error.containsKey("word")) {
      throw LakewardenException.raise(SyntaxError.of(error));
    }
    throw LakewardenException.of(error);
  }
}
