"""The server: one driver whose session other programs reach, by Thrift and by Spark Connect."""
