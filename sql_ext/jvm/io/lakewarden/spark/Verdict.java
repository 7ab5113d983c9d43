package io.lakewarden.spark;

/** What a server with limits thinks of a kind of node in a plan. */
enum Verdict {
  /** It reads, or works with what others read; nothing on storage changes by it. */
  READS,
  /** It changes what the catalog says, and no other file: refused where only reading is allowed. */
  CATALOG,
  /** It changes files at the places that it names, each of which must be a place for that. */
  FILES,
  /** Whether it is allowed depends on more than its kind; {@link Judge} knows on what. */
  DEPENDS,
  /** The files that it would touch are unknown. */
  REFUSED
}
