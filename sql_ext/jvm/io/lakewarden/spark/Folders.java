package io.lakewarden.spark;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.Collection;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.classic.SparkSession;

/** Keeps what Spark does to files of its own away from the folders of Hudi tables. */
final class Folders {
  private static final String MARK = ".hoodie";

  private final Configuration conf;
  private final List<Path> spared;

  /** Tables at `spared` places may go. */
  Folders(SparkSession session, Collection<String> spared) {
    this.conf = session.sparkContext().hadoopConfiguration();
    this.spared = spared.stream().map(Path::new).toList();
  }

  /** Refuse a folder that is, or lies in, one of a table. */
  void checkAbove(String what, String folder) {
    try {
      Path place = new Path(folder);
      FileSystem files = place.getFileSystem(conf);
      for (Path one = place; one != null; one = one.getParent()) {
        if (one.getName().equals(MARK) || isTable(files, one)) {
          throw refusal(what, folder, one);
        }
      }
    } catch (IOException failed) {
      throw LakewardenException.rethrow(failed);
    }
  }

  /** Refuse a folder that contains one of a table. */
  void checkBelow(String what, String folder) {
    try {
      Path place = new Path(folder);
      checkBelow(what, folder, place.getFileSystem(conf), place);
    } catch (IOException failed) {
      throw LakewardenException.rethrow(failed);
    }
  }

  private void checkBelow(String what, String folder, FileSystem files, Path place)
      throws IOException {
    if (spared.contains(place)) {
      return;
    }
    for (FileStatus one : list(files, place)) {
      if (one.getPath().getName().equals(MARK)) {
        throw refusal(what, folder, place);
      }
      if (one.isDirectory()) {
        checkBelow(what, folder, files, plain(one.getPath()));
      }
    }
  }

  private static Path plain(Path path) {
    boolean isLocal = "file".equals(path.toUri().getScheme());
    return isLocal ? Path.getPathWithoutSchemeAndAuthority(path) : path;
  }

  private boolean isTable(FileSystem files, Path place) throws IOException {
    return !spared.contains(place) && files.exists(new Path(place, MARK));
  }

  private static FileStatus[] list(FileSystem files, Path place) throws IOException {
    try {
      return files.listStatus(place);
    } catch (FileNotFoundException absent) {
      return new FileStatus[0];
    }
  }

  private static RuntimeException refusal(String what, String folder, Path table) {
    return LakewardenException.of(
        "FOLDER_OF_TABLE",
        "42501",
        what + " would touch " + folder + ".",
        "The Hudi table at " + table + " is there, whose files belong to its commits.",
        "Write to the table by its name, or choose a folder without a table in it or above it.");
  }
}
