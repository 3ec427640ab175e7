"""How long `manyhands rehearse` runs a script and waits for its ranks; its exit codes."""

RANKS = 4  # by default
TIMEOUT_S = 120.0  # of the run, by default
PATIENCE_S = 10.0  # a hang is reported where all ranks wait for so long, by default
# every PERIOD_S, ranks are looked at that have asked for nothing for QUIET_S
PERIOD_S, QUIET_S = 0.5, 2.0
OTHERS_S = 60  # how long a rank that ends after some steps waits for the others

CLEAN, FOUND, FAILED, UNKNOWN = 0, 1, 2, 3  # exit codes
