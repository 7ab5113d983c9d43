package io.lakewarden.spark;

import java.util.List;
import java.util.Map;
import java.util.Set;
import org.sparkproject.connect.grpc.ForwardingServerCallListener.SimpleForwardingServerCallListener;
import org.sparkproject.connect.grpc.Metadata;
import org.sparkproject.connect.grpc.ServerCall;
import org.sparkproject.connect.grpc.ServerCallHandler;
import org.sparkproject.connect.grpc.ServerInterceptor;
import org.sparkproject.connect.grpc.Status;
import org.sparkproject.connect.protobuf.Descriptors.FieldDescriptor;
import org.sparkproject.connect.protobuf.Message;

/**
 * Turns away what a Connect client sends to a server with limits besides queries: its own code,
 * which Spark would load, and commands that never come to the planner.
 */
public final class ConnectRequests implements ServerInterceptor {
  private static final String PACKAGE = "spark.connect.";
  // What a client may have done; all other commands are turned away, also those to come.
  private static final Set<String> COMMANDS =
      Set.of(
          "sql_command",
          "write_operation",
          "write_operation_v2",
          "create_dataframe_view",
          "merge_into_table_command",
          "get_resources_command",
          "checkpoint_command",
          "remove_cached_remote_relation_command");
  // Relations and expressions with code of the client's, or made without the planner.
  private static final Set<String> CODE =
      Set.of(
          "CommonInlineUserDefinedFunction",
          "CommonInlineUserDefinedTableFunction",
          "CommonInlineUserDefinedDataSource",
          "PythonUDF",
          "PythonUDTF",
          "PythonDataSource",
          "ScalarScalaUDF",
          "JavaUDF",
          "TypedAggregateExpression",
          "MlRelation");
  private static final Set<String> PLUGGED = Set.of("Relation", "Expression");
  // A file with code comes under such a name; rows of a client's own under "cache/".
  private static final String ROWS = "cache/";

  @Override
  public <Q, A> ServerCall.Listener<Q> interceptCall(
      ServerCall<Q, A> call, Metadata headers, ServerCallHandler<Q, A> next) {
    return new SimpleForwardingServerCallListener<>(next.startCall(call, headers)) {
      private boolean isOver;

      @Override
      public void onMessage(Q request) {
        String refused = isOver || !Statement.isLimited() ? null : refused((Message) request);
        if (refused == null && !isOver) {
          super.onMessage(request);
        } else if (!isOver) {
          isOver = true;
          call.close(Status.PERMISSION_DENIED.withDescription(said(refused)), new Metadata());
        }
      }

      @Override
      public void onHalfClose() {
        if (!isOver) {
          super.onHalfClose();
        }
      }
    };
  }

  private static String said(String what) {
    return "[LAKEWARDEN_STATEMENT_NOT_ALLOWED] "
        + what
        + " is not allowed here. This server has limits, and a client's own code would evade them."
        + " Use SQL and Spark's own functions, or ask the server's owner.";
  }

  /** What of a request is not allowed; null if all is. */
  static String refused(Message message) {
    String name = message.getDescriptorForType().getName();
    if (CODE.contains(name) || isReliableCheckpoint(message)) {
      return name;
    }
    for (Map.Entry<FieldDescriptor, Object> field : message.getAllFields().entrySet()) {
      String refused = refused(name, field.getKey(), field.getValue());
      if (refused != null) {
        return refused;
      }
    }
    return null;
  }

  private static String refused(String name, FieldDescriptor field, Object value) {
    boolean isCommand =
        field.getContainingType().getFullName().equals(PACKAGE + "Command")
            && !COMMANDS.contains(field.getName());
    boolean isByPredicates = name.equals("DataSource") && field.getName().equals("predicates");
    boolean isPlugin = field.getName().equals("extension") && PLUGGED.contains(name);
    boolean isFile =
        field.getContainingType().getFullName().startsWith(PACKAGE + "AddArtifactsRequest")
            && field.getName().equals("name")
            && !value.toString().startsWith(ROWS);
    if (isCommand || isByPredicates || isPlugin || isFile) {
      return isFile ? "An artifact" : field.getName();
    }
    return value instanceof List<?> all ? anyRefused(all) : oneRefused(value);
  }

  /** A checkpoint in files, and not in the memory and disks of executors. */
  private static boolean isReliableCheckpoint(Message message) {
    FieldDescriptor local = message.getDescriptorForType().findFieldByName("local");
    return message.getDescriptorForType().getName().equals("CheckpointCommand")
        && !Boolean.TRUE.equals(message.getField(local));
  }

  private static String anyRefused(List<?> values) {
    for (Object value : values) {
      String refused = oneRefused(value);
      if (refused != null) {
        return refused;
      }
    }
    return null;
  }

  private static String oneRefused(Object value) {
    return value instanceof Message message ? refused(message) : null;
  }
}
