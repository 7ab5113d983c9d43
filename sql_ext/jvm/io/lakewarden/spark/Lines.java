package io.lakewarden.spark;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import py4j.ClientServerConnection;
import py4j.PythonClient;

/**
 * The connections to Python of those threads that have asked it something. Py4j gives each thread
 * one of its own and keeps it for good, with a thread in Python at its other end. Servers make
 * threads as statements come, so the connections of those that have ended are closed here.
 */
final class Lines {
  private static final long LOOK_EVERY_SECONDS = 2;

  private final PythonClient python;
  private final Map<Thread, ClientServerConnection> open = new ConcurrentHashMap<>();

  private Lines(PythonClient python) {
    this.python = python;
  }

  /** Those of a client of Python; null where threads share their connections. */
  static Lines of(Object client) {
    if (!(client instanceof PythonClient python)) {
      return null;
    }
    Lines lines = new Lines(python);
    Executors.newSingleThreadScheduledExecutor(Lines::daemon)
        .scheduleWithFixedDelay(
            lines::closeLeft, LOOK_EVERY_SECONDS, LOOK_EVERY_SECONDS, TimeUnit.SECONDS);
    return lines;
  }

  boolean lead(Object client) {
    return python == client;
  }

  /** The current thread has asked. Python ends the connections that it has started. */
  void remember() {
    ClientServerConnection connection = python.getPerThreadConnection();
    if (connection != null && connection.isInitiatedFromClient()) {
      open.put(Thread.currentThread(), connection);
    }
  }

  private void closeLeft() {
    open.forEach(
        (thread, connection) -> {
          if (!thread.isAlive() && open.remove(thread, connection)) {
            connection.shutdown();
            python.connectionStopped(connection);
          }
        });
  }

  private static Thread daemon(Runnable work) {
    Thread thread = new Thread(work, "lakewarden-lines");
    thread.setDaemon(true);
    return thread;
  }
}
