"""What several tests share."""

import os

IS_SIMULATION = "LAKEWARDEN_KILLS" in os.environ
