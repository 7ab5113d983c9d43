package io.lakewarden.spark;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Map;
import javax.security.sasl.AuthenticationException;
import org.apache.hive.service.auth.PasswdAuthenticationProvider;

/** Admits clients of the Thrift server by user and password; without users, no client. */
public final class PasswordAuthenticator implements PasswdAuthenticationProvider {
  private static volatile Map<String, String> passwords = Map.of();

  /** The users of this driver from now on, with their passwords. */
  public static void letIn(Map<String, String> users) {
    passwords = Map.copyOf(users);
  }

  @Override
  public void Authenticate(String user, String password) throws AuthenticationException {
    String expected = user == null ? null : passwords.get(user);
    // The time that this takes must not show how much of a password is right.
    if (expected == null || password == null || !MessageDigest.isEqual(bytes(expected), bytes(password))) {
      throw new AuthenticationException("Wrong user or password.");
    }
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
